"""What an ended engine leaves is removed."""

from __future__ import annotations

import uuid
from pathlib import Path

from sglang.srt.managers.load_snapshot import shm_path_for
from sglang.srt.server_args import PortArgs

from sglang_ext.driver.engine_files import remove_files


def test_sockets_and_shared_memory(tmp_path: Path) -> None:
    sockets = [tmp_path / name for name in ("tokenizer", "scheduler", "detokenizer", "rpc", "metrics")]
    tokenizer, scheduler, detokenizer, rpc, metrics = (f"ipc://{socket}" for socket in sockets)
    ports = PortArgs(tokenizer, scheduler, detokenizer, 1234, rpc, metrics, None, None, instance_id=uuid.uuid4().hex)
    load, foreign = Path(shm_path_for(ports.instance_id)), tmp_path / "foreign"
    for file in (*sockets[1:], load, foreign):
        file.touch()
    remove_files(ports)
    assert list(tmp_path.iterdir()) == [foreign]
    assert not load.exists()
    remove_files(ports)
