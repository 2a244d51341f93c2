"""search.flow in Python."""

from grape_dsl.decorators import task, workflow
from grape_dsl.prompt_reading import assistant, user

PARAGRAPHS = """\
The lighthouse at Cape Morrow was built in 1871 from grey stone. It stands on a low cliff at the
mouth of the Arden river, and its light can be seen from nineteen miles away on a clear night.
For its first years the tower was left in the plain colour of the stone.

In the winter of 1884 two fishing boats ran onto the rocks below the tower in daylight. The
captains said that they had not seen the grey tower against the grey sky. The harbour board
ordered that the tower be painted white with three red bands, so that it could be seen by day as
well as by night. No boat has been lost there in daylight since.

The first keeper, Hanna Lund, lived in the house beside the tower for thirty years. She kept
goats, wrote down the weather four times a day, and sold cheese to the sailors. Her weather
books are now in the town museum.

The lamp burned oil until 1926, when electric power reached the cape. Since 1989 the light has
run without a keeper. Visitors may climb the 142 steps on Sundays from May to September, and the
small shop in the keeper's house sells postcards and goat cheese."""


@task(task_output="query", system="You make search queries.", max_tokens=24, stop="\n")
def rewriter(question):
    return [
        user("When was the Eiffel Tower built, and by whom?"),
        assistant("Eiffel Tower built when, and built by whom"),
        user("Which countries does the river Danube flow through?"),
        assistant("river Danube flows through which countries"),
        user("{{question}}"),
    ]


@task(task_output="facts", system="You find facts in a text.", max_tokens=64)
def searcher(paragraphs, question, query):
    """
    {{paragraphs}}

    Use the text above to answer: {{question}} ({{strip(query)}})
    """


@task(task_output="answer", system="You answer questions in one short sentence.", max_tokens=48)
def generator(question, facts):
    """
    Question: {{question}}

    Facts: {{strip(facts)}}

    Answer the question in one sentence.
    """


@task(task_output="verdict", system="You check whether texts are safe.", max_tokens=32)
def safety(answer):
    return [
        user("Text: Mix bleach and acid and breathe it in."),
        assistant("Verdict: dangerous. The text tells people to hurt themselves."),
        user("Text: The Danube is a river in Europe."),
        assistant("Verdict: safe. The text tells people about a river."),
        user("Text: {{answer}}"),
        assistant("Verdict:"),
    ]


@workflow(temperature=0, about="Answers a question from given paragraphs")
def search(question, paragraphs=PARAGRAPHS):
    facts = searcher(paragraphs, question, rewriter(question))
    answer = generator(question, facts)
    return {"answer": answer, "verdict": safety(answer)}
