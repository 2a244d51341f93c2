"""ChatEncoder: the known text and the holes of a prompt, as token ids with holes between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from grape_dsl.encoding.chat_template import ChatTemplate, Slot, Trim
from grape_dsl.encoding.errors import EncodingError
from grape_dsl.encoding.pieces import Hole, PromptPiece, Segment
from grape_dsl.encoding.stretches import Stretches
from grape_dsl.encoding.text_encoder import TextEncoder
from grape_dsl.encoding.tokenizer_folder import read_folder
from grape_dsl.encoding.turns import Turn, read_turns


class ChatEncoder:
    """Encodes prompts for one model. Safe to use from several threads.

    The chat template is rendered once per row of roles, with markers for the contents. Text between
    two special tokens of the template, contents included, is encoded in one go, so that it gets the ids
    that the whole text would get; only holes part it. Special tokens come from the template alone: what
    looks like one in a content, or in a raw prompt, is plain text.

    Args:
        tokenizer: copied.
        chat_template: Jinja text; None for a model without one, which takes raw prompts only.
        special_tokens: the template's variables, such as `{"bos_token": "<s>"}`.
        add_bos: whether raw prompts begin with `bos_token`; None: as `tokenizer` itself does.
        where: the model's name or path, for messages.

    Raises:
        EncodingError: the template is not valid.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        chat_template: str | None,
        special_tokens: Mapping[str, str] | None = None,
        *,
        add_bos: bool | None = None,
        where: str = "the model",
    ):
        tokens = dict(special_tokens or {})
        self.text = TextEncoder(tokenizer)
        bos = self.text.special_id(tokens.get("bos_token"))
        self._raw_start = self.text.leading_ids
        if add_bos is not None:
            self._raw_start = [bos] if add_bos and bos is not None else []
        self._where = where
        self._template = None if chat_template is None else ChatTemplate(chat_template, tokens, where)

    @classmethod
    def from_folder(cls, path: str | Path) -> ChatEncoder:
        """The encoder of the model in folder `path`.

        It reads tokenizer.json, and where they are there tokenizer_config.json, special_tokens_map.json
        and chat_template.jinja. Raises `EncodingError` for files that are missing or broken.
        """
        files = read_folder(Path(path))
        return cls(files.tokenizer, files.chat_template, files.special_tokens, add_bos=files.add_bos, where=str(path))

    def encode(self, pieces: Sequence[PromptPiece]) -> list[Segment]:
        """The prompt as non-empty rows of ids and holes, in prompt order.

        Where the template trims a turn's content, known text at that end is trimmed, and a hole at that
        end comes out stripped there. A prompt without any tokens gives no segments.

        Raises:
            EncodingError: the model has no chat template, or it refuses these turns.
        """
        return self._stretches(pieces).segments()

    def known_tokens(self, pieces: Sequence[PromptPiece]) -> list[int]:
        """Token counts before the first hole, between each two holes and behind the last; see `TokenCounter`."""
        return self._stretches(pieces).counts()

    def decode(self, ids: Sequence[int]) -> str:
        """The text of an output's `ids`, without special tokens."""
        return self.text.decode(ids, skip_special=True)

    def _stretches(self, pieces: Sequence[PromptPiece]) -> Stretches:
        turns = read_turns(pieces)
        stretches = Stretches(self.text)
        if isinstance(turns, list):
            self._render(turns, stretches)
        else:
            stretches.add_ids(self._raw_start)
            stretches.add_content(turns.content)
        stretches.close()
        return stretches

    def _render(self, turns: list[Turn], stretches: Stretches) -> None:
        if self._template is None:
            raise EncodingError(
                f"{self._where} has no chat template, so it cannot take prompts made of turns. "
                "Use raw(...) prompts, or a model with a chat template."
            )
        rendering = self._template.render(tuple(turn.role for turn in turns), continued=turns[-1].open)
        self._check_order(turns, [part.turn for part in rendering if isinstance(part, Slot)])
        for part in rendering:
            if isinstance(part, Slot):
                stretches.add_content(_trimmed(turns[part.turn].content, part))
            else:
                stretches.add_template(part)

    def _check_order(self, turns: list[Turn], order: list[int]) -> None:
        """A template may move a turn, such as the system text to the last user turn, but not past another's hole."""
        holes = [i for i in order if any(isinstance(piece, Hole) for piece in turns[i].content)]
        if holes != sorted(holes):
            raise EncodingError(
                f"the chat template of {self._where} changes the order of turns that use outputs of tasks: "
                f"{', '.join(f'{i + 1} ({turns[i].role})' for i in holes)}. Put these references into one turn."
            )


def _trimmed(content: Sequence[str | Hole], slot: Slot) -> list[str | Hole]:
    """`content` as the template leaves it."""
    row = _trimmed_start(content, slot.left, right=False)
    return _trimmed_start(row[::-1], slot.right, right=True)[::-1]


def _trimmed_start(content: Iterable[str | Hole], trim: Trim, *, right: bool) -> list[str | Hole]:
    row = list(content)
    if trim is Trim.NONE:
        return row
    characters = "\n" if trim is Trim.NEWLINES else None
    while row:
        first = row[0]
        if isinstance(first, Hole):
            return [first.widened(left=not right, right=right), *row[1:]]
        rest = first.rstrip(characters) if right else first.lstrip(characters)
        if rest:
            return [rest, *row[1:]]
        row.pop(0)
    return row
