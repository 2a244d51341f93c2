"""Prompts to token ids: chat templates and tokenizers, without a model library. Needs the extra `tokenizers`."""

from grape_dsl.encoding.chat_encoder import ChatEncoder
from grape_dsl.encoding.errors import EncodingError
from grape_dsl.encoding.pieces import Hole, PromptPiece, Segment
from grape_dsl.encoding.text_encoder import TextEncoder

__all__ = ["ChatEncoder", "EncodingError", "Hole", "PromptPiece", "Segment", "TextEncoder"]
