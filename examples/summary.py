"""summary.flow in Python. One function is called for two of its tasks."""

from grape_dsl.decorators import task, workflow

ROLE = "You write short and exact summaries."


@task(task_output="after_1", system=ROLE, max_tokens=80)
def begin(part):
    """
    Summarize this text in two sentences.

    {{part}}
    """


@task(task_output="after_2", system=ROLE, max_tokens=96)
def refine(which, heading, part, before):
    """
    Below are the {{which}} part of a document and the summary of what came before it.
    Write one summary of everything in three sentences.

    {{heading}}:
    {{part}}

    Summary of what came before:
    {{strip(before)}}
    """


@workflow(temperature=0, about="Summarises a document in three parts, one after another")
def summary(part_1, part_2, part_3):
    after_1 = begin(part_1)
    after_2 = refine("next", "Next part", part_2, after_1)
    overview = refine("last", "Last part", part_3, after_2, name="finish", task_output="overview")
    return {"overview": overview}
