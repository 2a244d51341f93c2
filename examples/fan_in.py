"""fan_in.flow in Python."""

from grape_dsl.decorators import task, workflow
from grape_dsl.prompt_reading import assistant, user


@task(task_output="benefits", max_tokens=40, stop=".")
def find_benefits(background, plan):
    return [user("{{background}}\n\nName two good things about {{plan}}."), assistant("Two good things are that")]


@task(task_output="risks", max_tokens=40, stop=".")
def find_risks(background, plan):
    return [user("{{background}}\n\nName two risks of {{plan}}."), assistant("The two risks are that")]


@task(task_output="cost", max_tokens=40, stop=".")
def find_cost(background, plan):
    return [user("{{background}}\n\nWhat would {{plan}} cost in money and time?"), assistant("It would cost")]


@task(task_output="answer", system="You give short advice.", max_tokens=80)
def decide(plan, benefits, risks, cost):
    shown_plan = """\
Plan: a coffee machine
Benefits: it gives people a place to meet, and it saves them the walk to the cafe.
Risks: the machine can break, and that nobody wants to clean it.
Cost: 600 euros to buy a machine, which is a lot of money for an office."""
    shown_advice = (
        "Yes, I would buy a coffee machine, because it gives people a place to meet. "
        "The risk is that the machine can break. It costs 600 euros."
    )
    asked = """\
Plan: {{plan}}
Benefits: {{strip(benefits)}}.
Risks: {{strip(risks)}}.
Cost: {{strip(cost)}}."""
    return [user(shown_plan), assistant(shown_advice), user(asked)]


@workflow(temperature=0, about="Looks at a plan from three sides and gives advice")
def fan_in(plan, background="There is no background."):
    views = [find(background, plan) for find in (find_benefits, find_risks, find_cost)]
    return {"answer": decide(plan, *views)}
