"""The model that Grape uses when none is named: SmolLM2-135M-Instruct, fetched and converted on first use."""

from sglang_ext.embedded_model.errors import EmbeddedModelError, Progress, Step
from sglang_ext.embedded_model.store import TITLE, State, ensure, folder, state

__all__ = ["TITLE", "EmbeddedModelError", "Progress", "State", "Step", "ensure", "folder", "state"]
