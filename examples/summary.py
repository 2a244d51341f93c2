"""summary.flow in Python, with calls."""

from grape_dsl import InputVar, IntermediateVar, OutputVar, Workflow, assistant, user
from grape_dsl.task import Options

summary = Workflow(
    "summary",
    about="Summarises a history in three parts, one after another",
    defaults=Options(temperature=0, max_tokens=40, stop=(".",)),
)

for part in ("part_1", "part_2", "part_3"):
    summary.add_variable(part, InputVar)
for sentence in ("first", "second", "third"):
    summary.add_variable(sentence, IntermediateVar)

summary.add_variable("after_1", IntermediateVar, value="At first, {{strip(first)}}.")
summary.add_variable("after_2", IntermediateVar, value="{{after_1}} Then, {{strip(second)}}.")
summary.add_variable("overview", OutputVar, value="{{after_2}} Now, {{strip(third)}}.")

ROLE = "Repeat the most important fact of the text in one short sentence."


def add_sentence(name: str, part: str, start: str, sentence: str) -> None:
    """Add the task that goes on behind `start`, which has the summary so far."""
    prompt = [user(part + "\n\nSum this up in one short sentence."), assistant(start)]
    summary.add_task(name, prompt, system=ROLE, task_output=sentence)


add_sentence("begin", "{{part_1}}", "At first,", "first")
add_sentence("refine", "{{part_2}}", "{{after_1}} Then,", "second")
add_sentence("finish", "{{part_3}}", "{{after_2}} Now,", "third")
