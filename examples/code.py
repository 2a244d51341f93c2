"""code.flow in Python."""

from grape_dsl.decorators import task, workflow
from grape_dsl.prompt_reading import assistant, user

SHOWN_PRODUCT = "The tool reads the prices, adds them up, and prints the total."
SHOWN_MODULES = "Use argparse for the command line, re for the text, and unittest for the tests."
SHOWN_PLAN = "First write the function total(prices), which adds up the prices. Then print the total."
SHOWN_PROGRAM = """\
def total(prices):
    result = 0
    for price in prices:
        result += price
    return result"""
SHOWN_TESTS = "assert total([10, 20]) == 30\nassert total([]) == 0"


@task(task_output="product", max_tokens=48, stop="\n")
def product_planner(idea):
    return [
        user("Idea: A tool that adds up the prices on a receipt."),
        assistant(SHOWN_PRODUCT),
        user("Idea: {{idea}}"),
        assistant("The tool"),
    ]


@task(task_output="framework", max_tokens=32, stop="\n")
def framework_designer(product):
    return [
        user(f"{SHOWN_PRODUCT} Which Python modules does it need?"),
        assistant(SHOWN_MODULES),
        user("The tool {{strip(product)}} Which Python modules does it need?"),
        assistant("Use argparse for"),
    ]


@task(task_output="plan", max_tokens=48, stop="\n")
def project_planner(product, framework):
    return [
        user(f"{SHOWN_PRODUCT} {SHOWN_MODULES}"),
        assistant(SHOWN_PLAN),
        user("The tool {{strip(product)}} Use argparse for {{strip(framework)}}"),
        assistant("First write the function"),
    ]


@task(task_output="program", max_tokens=96, stop=["```", "\n\ndef"])
def code_generator(plan):
    return [
        user(SHOWN_PLAN),
        assistant(f"```python\n{SHOWN_PROGRAM}\n```"),
        user("First write the function {{strip(plan)}}"),
        assistant("```python"),
    ]


@task(task_output="tests", max_tokens=64, stop="\n\n")
def test_validator(program):
    return [user(SHOWN_PROGRAM), assistant(SHOWN_TESTS), user("{{strip(program)}}")]


@workflow(temperature=0, about="Plans a small program, writes its main function and a test")
def code(idea):
    product = product_planner(idea)
    plan = project_planner(product, framework_designer(product))
    program = code_generator(plan)
    return {"program": program, "tests": test_validator(program)}
