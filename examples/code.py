"""code.flow in Python."""

from grape_dsl.decorators import task, workflow

RULES = "You work in a small software team. Be short and concrete."


@task(task_output="product", system=RULES, max_tokens=64)
def product_planner(idea):
    """
    List three features of this product, one short line each.

    Product: {{idea}}
    """


@task(task_output="framework", system=RULES, max_tokens=64)
def framework_designer(product):
    """
    Name the Python modules that a program with these features needs. Write one short line for each module.

    Features:
    {{product}}
    """


@task(task_output="plan", system=RULES, max_tokens=80)
def project_planner(idea, product, framework):
    """
    Write the steps in which a programmer builds this product, one short line each.

    Product: {{idea}}

    Features:
    {{product}}

    Modules:
    {{framework}}

    List three or four steps.
    """


@task(task_output="program", system=RULES, max_tokens=96)
def code_generator(idea, plan):
    """
    Write one short Python function, the most important one of this program. Write code only.

    Program: {{idea}}

    Steps:
    {{strip(plan)}}
    """


@task(task_output="tests", system=RULES, max_tokens=64)
def test_validator(program):
    """
    Read the Python code and write two short test cases for it, one line each.

    Code:
    {{program}}
    """


@workflow(temperature=0, about="Plans a small program, writes its main function and its test")
def code(idea):
    product = product_planner(idea)
    plan = project_planner(idea, product, framework_designer(product))
    program = code_generator(idea, plan)
    return {"program": program, "tests": test_validator(program)}
