"""fan_in.flow in Python. One function is called for three of its tasks."""

from grape_dsl.decorators import task, workflow


@task(task_output="view", max_tokens=56)
def view(background, question, request):
    """
    Background: {{background}}

    Question: {{question}}

    {{request}}
    """


@task(task_output="answer", system="You give clear advice in a few sentences.", max_tokens=80)
def decide(background, question, benefits, risks, costs):
    """
    Background: {{background}}

    Question: {{question}}

    Benefits:
    {{benefits}}

    Risks:
    {{risks}}

    Costs:
    {{costs}}

    Give your advice on the question in two sentences.
    """


REQUESTS = {
    "benefits": "Name two benefits. Write one short sentence for each.",
    "risks": "Name two risks. Write one short sentence for each.",
    "costs": "Say in two short sentences what it would cost in money and time.",
}


@workflow(temperature=0, about="Looks at a question from three sides and gives one answer")
def fan_in(question, background="There is no background."):
    views = {
        side: view(background, question, request, name=f"find_{side}", task_output=side)
        for side, request in REQUESTS.items()
    }
    return {"answer": decide(background, question, **views)}
