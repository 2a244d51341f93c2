"""Each mutation of the runtime turns a test red."""

from __future__ import annotations

import pytest

from tests.mutations.mutation import MUTATIONS, Mutation
from tests.mutations.run import LIMIT, ROOT, run


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_it_fits_the_code(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text().count(mutation.old) == 1


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_the_tests_it_names_exist(mutation: Mutation) -> None:
    for test in mutation.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(), test


@pytest.mark.slow
@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_it_is_noticed(mutation: Mutation) -> None:
    outcome = run(mutation)
    assert outcome.red, outcome.tail
