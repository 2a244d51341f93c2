"""fan_in.flow in Python."""

from grape_dsl.decorators import task, workflow
from grape_dsl.prompt_reading import assistant, user


@task(task_output="benefit", max_tokens=40, stop=".")
def find_benefit(background, plan):
    return [user("{{background}}\n\nWhat is good about {{plan}}?"), assistant("A good thing is that")]


@task(task_output="risk", max_tokens=40, stop=".")
def find_risk(background, plan):
    return [user("{{background}}\n\nName one risk of {{plan}}."), assistant("One risk is that")]


@task(task_output="cost", max_tokens=40, stop=".")
def find_cost(background, plan):
    return [user("{{background}}\n\nWhat would {{plan}} cost?"), assistant("It would cost")]


@task(task_output="answer", system="You give short advice.", max_tokens=80)
def decide(plan, benefit, risk, cost):
    shown_plan = """\
Plan: a coffee machine for the office
Benefit: people save the walk to the cafe.
Risk: it breaks when nobody cleans it.
Cost: 600 euros for a good machine."""
    shown_advice = (
        "Yes, go for the coffee machine, because people save the walk to the cafe. "
        "Keep in mind that it breaks when nobody cleans it, and that it costs 600 euros."
    )
    asked = """\
Plan: {{plan}}
Benefit: {{strip(benefit)}}.
Risk: {{strip(risk)}}.
Cost: {{strip(cost)}}."""
    return [user(shown_plan), assistant(shown_advice), user(asked)]


@workflow(temperature=0, about="Looks at a plan from three sides and gives advice")
def fan_in(plan, background="There is no background."):
    views = [find(background, plan) for find in (find_benefit, find_risk, find_cost)]
    return {"answer": decide(plan, *views)}
