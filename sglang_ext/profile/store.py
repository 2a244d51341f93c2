"""Where profiles are kept, and which one an engine takes."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from sglang_ext.profile.engine_key import EngineKey
from sglang_ext.profile.profile import Profile
from sglang_ext.settings import cache_folder

AUTO, OFF = "auto", "off"
"""Values of GRAPE_PROFILE beside a path."""
COMMAND = "grape profile"


class ProfileError(ValueError):
    """A file that is no profile, or one of another engine."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What an engine takes.

    Args:
        profile, file: both None where it starts without one.
        reason: why there is none; empty with one.
    """

    profile: Profile | None = None
    file: Path | None = None
    reason: str = ""


def folder() -> Path:
    """Profiles of all engines; it need not exist yet."""
    return cache_folder() / "profiles"


def file_of(key: EngineKey) -> Path:
    """Where an engine's profile is kept unless it is named otherwise."""
    return folder() / f"{key.slug}.json"


def save(profile: Profile, file: Path) -> None:
    """Write a file that is whole whenever it is there. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(profile.model_dump_json(indent=1))
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def read(file: Path) -> Profile:
    """Raises ProfileError if the file cannot be read or holds something else."""
    try:
        return Profile.model_validate_json(file.read_bytes())
    except OSError as error:
        raise ProfileError(f"cannot read the profile {file}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ProfileError(f"{file} is no profile that `{COMMAND}` wrote: {where}: {first['msg']}") from None


def stored() -> list[Path]:
    """The files in the folder of profiles, the newest first."""
    found = []
    for file in folder().glob("*.json"):
        # Another process may have just removed it.
        with suppress(FileNotFoundError):
            found.append((file.stat().st_mtime, file))
    return [file for _, file in sorted(found, reverse=True)]


def choose(setting: str, key: EngineKey) -> Choice:
    """The profile that an engine takes.

    Args:
        setting: `auto`: the newest in the folder of profiles that fits; else the path of a file.

    Raises:
        ProfileError: a file that was named is no profile, or does not fit; the message says in what.
    """
    if setting != AUTO:
        file = Path(setting).expanduser()
        profile = read(file)
        if unlike := profile.key.differences(key):
            raise ProfileError(
                f"the profile {file} belongs to another engine: {'; '.join(unlike)}. "
                f"Measure this one with `{COMMAND}`, or set GRAPE_PROFILE to {AUTO} or {OFF}"
            )
        return Choice(profile, file.absolute())
    nearest: list[str] | None = None
    for file in stored():
        try:
            profile = read(file)
        except ProfileError:
            continue
        unlike = profile.key.differences(key)
        if not unlike:
            return Choice(profile, file)
        if nearest is None or len(unlike) < len(nearest):
            nearest = unlike
    if nearest is None:
        return Choice(reason=f"there is none in {folder()}; `{COMMAND}` measures one")
    return Choice(reason=f"none in {folder()} fits; the nearest: {'; '.join(nearest)}; `{COMMAND}` measures one")
