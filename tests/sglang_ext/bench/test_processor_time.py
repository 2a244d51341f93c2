"""Own processor time told from that of others."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from sglang_ext.bench.processor_time import ProcessorTime

BUSY = "import time\nwhile time.process_time() < 0.6: pass\nprint('done', flush=True)\ninput()"


def test_a_childs_time_is_our_own():
    before = ProcessorTime.now()
    if before is None:
        pytest.skip("this system does not say")
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        after = ProcessorTime.now()
        child.kill()
    assert after is not None
    assert after.own - before.own > 0.5
    assert after.all - before.all >= 0.5


def test_what_others_took():
    assert ProcessorTime(20.0, 5.0).others_since(ProcessorTime(10.0, 1.0)) == 6.0
    # Clocks of both are rounded to ticks.
    assert ProcessorTime(10.0, 2.0).others_since(ProcessorTime(10.0, 1.0)) == 0.0


def test_work_of_this_process_is_none_of_others():
    before = ProcessorTime.now()
    if before is None:
        pytest.skip("this system does not say")
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    after = ProcessorTime.now()
    assert after is not None and after.own - before.own >= 0.25
