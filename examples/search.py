"""search.flow in Python."""

from grape_dsl.decorators import task, workflow


@task(task_output="query", system="You turn questions into short search queries.", max_tokens=24, stop="\n")
def rewriter(question):
    """
    Write one short search query for this question.

    Question: {{question}}
    """


@task(task_output="facts", system="You find facts in a text and copy them.", max_tokens=96)
def searcher(paragraphs, query):
    """
    Read the text and copy the two sentences that help most with the search query.

    Text:
    {{paragraphs}}

    Search query: {{strip(query)}}
    """


@task(task_output="answer", system="You answer questions in one or two short sentences.", max_tokens=64)
def generator(question, facts):
    """
    Answer the question with the facts below. Use only these facts.

    Question: {{question}}

    Facts:
    {{facts}}

    Answer the question in one or two sentences.
    """


@task(task_output="verdict", system="You check whether a text is safe for children.", max_tokens=32)
def safety(answer):
    """
    Does the text contain violence, hate or advice that could hurt somebody?
    Begin with yes or no, then give the reason in one short sentence.

    Text: {{answer}}
    """


@workflow(temperature=0, about="Answers a question from given paragraphs")
def search(question, paragraphs):
    facts = searcher(paragraphs, rewriter(question))
    answer = generator(question, facts)
    return {"answer": answer, "verdict": safety(answer)}
