"""Every internal of SGLang that the extension relies on, by name: an upgrade of SGLang fails here first."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from sglang_ext.engine.plugin import HOOKS, SUPPORTED_SGLANG

RUNTIME = Path(__file__).parents[2] / "sglang_ext"

# What is called or overridden, with the parameters that are passed or taken.
CALLABLES: dict[str, tuple[str, ...]] = {
    "sglang.srt.managers.scheduler:Scheduler.__init__": ("server_args", "port_args"),
    "sglang.srt.managers.scheduler:Scheduler.get_prefill_adder_class": (),
    "sglang.srt.managers.scheduler:Scheduler.get_output_streamer_class": (),
    "sglang.srt.managers.scheduler:Scheduler.init_schedule_policy": (),
    "sglang.srt.managers.scheduler:Scheduler.init_request_dispatcher": (),
    "sglang.srt.managers.scheduler:Scheduler._create_generation_req": ("recv_req", "args", "kwargs"),
    "sglang.srt.managers.scheduler:Scheduler._add_request_to_queue": ("req", "is_retracted"),
    "sglang.srt.managers.scheduler:Scheduler._set_or_validate_priority": ("req",),
    "sglang.srt.managers.scheduler:Scheduler._release_aborted_request": ("req",),
    "sglang.srt.managers.scheduler:Scheduler.retire_unadmitted_request": ("req",),
    "sglang.srt.managers.scheduler:Scheduler._abort_on_queued_limit": ("recv_req",),
    "sglang.srt.managers.scheduler:Scheduler.flush_cache": ("empty_cache",),
    "sglang.srt.managers.scheduler:Scheduler._poll_timeout_aborts": (),
    "sglang.srt.managers.scheduler:Scheduler.send_abort_output": ("abort_req", "req"),
    "sglang.srt.managers.scheduler:Scheduler.abort_request": ("recv_req",),
    "sglang.srt.managers.scheduler:Scheduler.init_req_max_new_tokens": ("req",),
    "sglang.srt.managers.scheduler:Scheduler.get_next_batch_to_run": ("running_batch", "last_batch"),
    "sglang.srt.managers.scheduler:Scheduler.update_running_batch": ("batch",),
    "sglang.srt.managers.scheduler:Scheduler.get_num_allocatable_reqs": (
        "running_bs",
        "beam_width",
        "running_batch",
        "num_held_rows",
    ),
    "sglang.srt.managers.scheduler:Scheduler.is_fully_idle": ("for_health_check", "ignore_waiting"),
    "sglang.srt.managers.scheduler:Scheduler.pause_generation": ("recv_req",),
    "sglang.srt.managers.scheduler:Scheduler.get_internal_state": ("recv_req",),
    "sglang.srt.managers.schedule_policy:PrefillAdder.add_one_req": ("req", "has_chunked_req", "truncation_align_size"),
    "sglang.srt.managers.schedule_policy:PrefillAdder.add_chunked_req": ("req",),
    "sglang.srt.managers.schedule_policy:PrefillAdder.budget_state": (),
    "sglang.srt.managers.schedule_policy:PrefillAdder.ceil_paged_tokens": ("tokens",),
    "sglang.srt.managers.schedule_policy:SchedulePolicy.calc_priority": ("waiting_queue", "running_batch"),
    "sglang.srt.managers.schedule_batch:Req.init_next_round_input": ("tree_cache", "cow_mamba"),
    "sglang.srt.managers.schedule_batch:Req.reset_for_retract": (),
    "sglang.srt.managers.schedule_batch:Req.set_finish_with_abort": ("error_msg", "status_code", "err_type"),
    "sglang.srt.managers.schedule_batch:Req.update_finish_state": ("new_accepted_len",),
    "sglang.srt.managers.schedule_batch:Req.finished": (),
    "sglang.srt.managers.schedule_batch:FINISH_ABORT.__init__": ("message", "status_code"),
    "sglang.srt.managers.schedule_batch:FINISH_MATCHED_TOKEN.__init__": ("matched",),
    "sglang.srt.managers.schedule_batch:FINISH_MATCHED_STR.__init__": ("matched",),
    "sglang.srt.managers.schedule_batch:ScheduleBatch.filter_batch": ("reqs_to_exclude",),
    "sglang.srt.managers.schedule_batch:ScheduleBatch.check_decode_mem": (),
    "sglang.srt.mem_cache.kv_cache_configurator:KVCacheConfigurator._build_req_to_token_pool": ("max_num_reqs",),
    "sglang.srt.mem_cache.common:checkpoint_kv_cache": ("req", "tree_cache"),
    "sglang.srt.mem_cache.common:release_kv_cache": ("req", "tree_cache", "checkpoint"),
    "sglang.srt.mem_cache.common:match_kv_cache": ("req", "tree_cache", "max_prefix_len"),
    "sglang.srt.disaggregation.utils:prepare_abort": ("req", "error_message", "status_code"),
    "sglang.srt.managers.scheduler_components.output_streamer:SchedulerOutputStreamer.stream_output": (
        "reqs",
        "return_logprob",
        "skip_req",
    ),
    "sglang.srt.managers.scheduler_components.output_streamer:"
    "SchedulerOutputStreamer.build_additional_customized_info": ("reqs",),
    "sglang.srt.managers.scheduler_components.output_streamer:"
    "SchedulerOutputStreamer.is_request_level_customized_info_key": ("key",),
    "sglang.srt.plugins.hook_registry:HookRegistry.register": ("target", "hook", "hook_type"),
    "sglang.srt.runtime_context:get_parallel": (),
    "sglang.utils:TypeBasedDispatcher.__iadd__": ("other",),
    "sglang.srt.entrypoints.engine:Engine.async_generate": (
        "input_ids",
        "sampling_params",
        "stream",
        "rid",
        "kv_hints",
    ),
    "sglang.srt.entrypoints.engine:Engine.run_scheduler_process_func": (),
    "sglang.srt.entrypoints.engine:Engine._launch_scheduler_processes": ("server_args", "port_args"),
    "sglang.srt.managers.load_snapshot:shm_path_for": ("ipc_name",),
    "sglang.srt.entrypoints.engine:Engine.run_detokenizer_process_func": (),
    "sglang.srt.managers.tokenizer_manager:TokenizerManager.get_internal_state": (),
    "sglang.srt.managers.tokenizer_manager:TokenizerManager.abort_request": ("rid",),
    "sglang.srt.managers.scheduler:run_scheduler_process": (),
    "sglang.srt.managers.scheduler:Scheduler.run_batch": ("batch",),
    "sglang.srt.managers.scheduler:Scheduler.on_idle": (),
    "sglang.srt.distributed.parallel_state:GroupCoordinator.broadcast_object": ("obj", "src"),
    "sglang.srt.entrypoints.http_server:launch_server": ("server_args", "run_scheduler_process_func"),
    "sglang.srt.plugins:load_plugins": (),
    "sglang.srt.server_args:prepare_server_args": ("argv",),
    "sglang.srt.server_args:ServerArgs.resolve_once": (),
    "sglang.srt.sampling.sampling_params:SamplingParams": ("stream_interval", "ignore_eos"),
    "sglang.srt.managers.detokenizer_manager:run_detokenizer_process": (),
    "sglang.srt.server_args:ServerArgs.add_cli_args": ("parser",),
    "sglang.srt.utils:kill_process_tree": ("parent_pid",),
    "sglang.srt.utils.rank_consensus_checker:rank_consensus": ("same_params", "same_results"),
    "sglang.kernels.fused_op:BaseFusedOp.register_oot_forward": ("op_cls", "fn", "platform_key"),
    "sglang.srt.layers.attention.base_attn_backend:AttentionBackend.init_forward_metadata": ("forward_batch",),
    "sglang.srt.layers.attention.base_attn_backend:AttentionBackend.forward_extend": (
        "q",
        "k",
        "v",
        "layer",
        "forward_batch",
        "save_kv_cache",
    ),
    "sglang.srt.layers.quantization.unquant:UnquantizedLinearMethod.apply": ("layer", "x", "bias"),
    "sglang.srt.layers.quantization.unquant:UnquantizedEmbeddingMethod.apply": ("layer", "x", "bias"),
    "sglang.srt.layers.layernorm:RMSNorm.forward_native": ("x", "residual", "post_residual_addition", "quant_linear"),
    "sglang.srt.layers.activation:SiluAndMul.forward_native": ("x",),
    "sglang.srt.layers.rotary_embedding.base:RotaryEmbedding.forward_native": ("positions", "query", "key", "offsets"),
    "sglang.srt.mem_cache.allocation:get_last_loc_torch": (),
    "sglang.srt.mem_cache.allocation:get_last_loc_triton": (),
    "sglang.srt.model_executor.forward_context:get_attn_backend": (),
    "sglang.srt.models.llama:LlamaModel.forward": ("input_ids", "positions", "forward_batch", "input_embeds"),
    "sglang.srt.models.qwen2:Qwen2Model.forward": ("input_ids", "positions", "forward_batch", "input_embeds"),
    "sglang.srt.models.qwen3:Qwen3Model.forward": ("input_ids", "positions", "forward_batch", "input_embeds"),
    "sglang.srt.runtime_context:get_server_args": (),
    "sglang.srt.arg_groups.model_override_base:model_config_of": ("server_args",),
    "sglang.srt.configs.model_config:ModelConfig.get_total_num_kv_heads": (),
    "sglang.srt.entrypoints.engine:Engine._launch_detokenizer_subprocesses": (),
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool._create_buffers_normal": (),
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool._kv_buffer_shapes": (),
    "sglang.srt.model_executor.model_runner_components.weight_updater:WeightUpdater.update_weights_from_tensor": (
        "named_tensors",
        "load_format",
    ),
    "sglang.srt.utils.hf_transformers.tokenizer:get_tokenizer": ("tokenizer_name",),
}

# Names that are read as they are: classes, members, registries.
NAMES = (
    "sglang.srt.managers.schedule_policy:AddReqResult.CONTINUE",
    "sglang.srt.managers.schedule_policy:AddReqResult.NO_TOKEN",
    "sglang.srt.managers.schedule_policy:AddReqResult.OTHER",
    "sglang.srt.managers.schedule_policy:PrefillAdder.cur_rem_tokens",
    "sglang.srt.managers.schedule_policy:PrefillAdder.rem_total_tokens",
    "sglang.srt.managers.schedule_batch:Req.output_ids_through_stop",
    "sglang.srt.managers.schedule_batch:ReqKvInfo.holds_kv",
    "sglang.srt.managers.schedule_batch:ReqKvInfo.kv_committed_len",
    "sglang.srt.managers.io_struct:AbortReq",
    "sglang.srt.managers.io_struct:BaseReq",
    "sglang.srt.plugins.hook_registry:HookRegistry._patched",
    "sglang.srt.plugins.hook_registry:HookType.REPLACE",
    "sglang.srt.layers.attention.attention_registry:ATTENTION_BACKENDS",
    "sglang.srt.arg_groups.choices:ATTENTION_BACKEND_CHOICES",
    "sglang.srt.layers.radix_attention:AttentionType.DECODER",
    "sglang.srt.layers.vocab_parallel_embedding:VocabParallelEmbedding",
    "sglang.srt.mem_cache:allocation",
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool.get_key_buffer",
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool.get_value_buffer",
    "sglang.srt.platforms.cpu:CpuDeviceMixin",
    "sglang.srt.platforms:current_platform",
    "sglang.srt.utils.server_args_config_parser:ConfigArgumentMerger",
    "sglang.srt.platforms.device_mixin:PlatformEnum.OOT",
    "sglang.srt.platforms.interface:SRTPlatform.apply_server_args_defaults",
    "sglang.srt.platforms.interface:SRTPlatform.get_compile_backend",
    "sglang.srt.platforms.interface:SRTPlatform.get_default_attention_backend",
    "sglang.srt.platforms.interface:SRTPlatform.get_dispatch_key_name",
    "sglang.srt.platforms.interface:SRTPlatform.get_kv_pool_cls",
    "sglang.srt.platforms.interface:SRTPlatform.init_backend",
    "sglang.srt.platforms.interface:SRTPlatform.post_load_model",
    "sglang.srt.platforms.interface:PlatformCapabilities",
    "sglang.srt.configs.model_config:AttentionArch.MHA",
    "sglang.srt.environ:envs.SGLANG_EXTERNAL_MODEL_PACKAGE",
    "sglang.srt.models.llama:LlamaForCausalLM",
    "sglang.srt.models.qwen2:Qwen2ForCausalLM",
    "sglang.srt.models.qwen3:Qwen3ForCausalLM",
)

# Attributes that SGLang sets on its objects, as they stand in its source.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "sglang.srt.entrypoints.engine:Engine": ("tokenizer_manager", "send_to_rpc", "server_args"),
    "sglang.srt.layers.radix_attention:RadixAttention": (
        "tp_q_head_num",
        "tp_k_head_num",
        "qk_head_dim",
        "v_head_dim",
        "scaling",
        "layer_id",
        "logit_cap",
        "sliding_window_size",
        "is_cross_attention",
        "attn_type",
        "quant_method",
        "k_scale",
        "xai_temperature_len",
    ),
    "sglang.srt.model_executor.model_runner:ModelRunner": (
        "decode_attention_backend_str",
        "kv_cache_dtype",
        "prefill_attention_backend_str",
    ),
    "sglang.srt.distributed.parallel_state:GroupCoordinator": ("rank_in_group", "world_size"),
    "sglang.srt.configs.model_config:ModelConfig": (
        "attention_arch",
        "context_len",
        "dtype",
        "hf_config",
        "hf_text_config",
        "model_path",
        "quantization",
        "head_dim",
        "num_hidden_layers",
        "v_head_dim",
    ),
    "sglang.srt.mem_cache.memory_pool:MHATokenToKVPool": ("k_buffer", "v_buffer", "kv_cache_layout"),
    "sglang.srt.layers.layernorm:RMSNorm": (
        "weight",
        "variance_epsilon",
        "variance_size_override",
        "fp32_residual",
        "override_orig_dtype",
        "cast_x_before_out_mul",
    ),
    "sglang.srt.layers.rotary_embedding.base:RotaryEmbedding": (
        "rotary_dim",
        "head_size",
        "is_neox_style",
    ),
    "sglang.srt.models.llama:LlamaModel": ("layers", "norm", "embed_tokens", "layers_to_capture"),
    "sglang.srt.models.qwen2:Qwen2Model": ("layers", "norm", "embed_tokens", "layers_to_capture"),
    "sglang.srt.models.qwen3:Qwen3Attention": ("q_norm", "k_norm", "qkv_proj", "o_proj", "rotary_emb", "attn"),
    "sglang.srt.models.llama:LlamaAttention": ("qkv_proj", "o_proj", "rotary_emb", "attn"),
    "sglang.srt.models.llama:LlamaMLP": ("gate_up_proj", "down_proj"),
    "sglang.srt.managers.scheduler:Scheduler": (
        "chunked_req",
        "waiting_queue",
        "last_batch",
        "tree_cache",
        "req_to_token_pool",
        "token_to_kv_pool_allocator",
        "server_args",
        "max_running_requests",
        "max_req_input_len",
        "model_config",
        "processed_tokens_counter",
        "is_hybrid_swa",
        "is_generation",
        "tokenizer",
        "policy",
        "_request_dispatcher",
        "device",
        "enable_overlap",
        "tp_group",
        "tp_size",
        "tp_worker",
    ),
    "sglang.srt.managers.schedule_batch:ScheduleBatch": ("prefix_lens", "extend_lens", "decoding_reqs"),
    "sglang.srt.managers.schedule_policy:PrefillAdder": (
        "rem_chunk_tokens",
        "new_chunked_req",
        "can_run_list",
        "memory_budget",
    ),
    "sglang.srt.mem_cache.prefill_budget:PrefillBudget": ("total_offset", "current_offset"),
    "sglang.srt.managers.schedule_batch:Req": (
        "origin_input_ids",
        "origin_input_ids_unpadded",
        "output_ids",
        "prefix_len",
        "extend_end",
        "inflight_middle_chunks",
        "finished_reason",
        "to_finish",
        "retraction_count",
        "cached_tokens",
        "cached_tokens_device",
        "logprob_start_len",
        "num_matched_prefix_tokens",
        "arrival_processed_tokens",
        "lock",
        "kv",
        "kv_hints",
        "session_id",
        "beam_group",
        "multimodal_inputs",
        "input_embeds",
        "positional_embed_overrides",
    ),
}


def find(path: str) -> Any:
    return pkgutil.resolve_name(path)


def test_the_version_is_the_tested_one() -> None:
    assert version("sglang") == SUPPORTED_SGLANG


@pytest.mark.parametrize("path", CALLABLES)
def test_callable(path: str) -> None:
    parameters = inspect.signature(find(path)).parameters
    missing = [name for name in CALLABLES[path] if name not in parameters]
    assert not missing, f"{path} has no parameters {missing}"


@pytest.mark.parametrize("path", NAMES)
def test_name(path: str) -> None:
    find(path)


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_attributes(path: str) -> None:
    source = inspect.getsource(find(path))
    missing = [name for name in ATTRIBUTES[path] if not re.search(rf"\bself\.{name}(,|\b[^=\n]*=)", source)]
    assert not missing, f"{path} does not set {missing}"


def test_hooks_exist() -> None:
    for target in HOOKS:
        find(target)


def test_middle_chunks_are_drained_as_the_extension_expects() -> None:
    """A result of a piece in flight lowers the count and is never committed, finished requests included."""
    from sglang.srt.managers.scheduler_components.batch_result_processor import SchedulerBatchResultProcessor

    source = inspect.getsource(SchedulerBatchResultProcessor.process_batch_result_prefill)
    assert "req.finished() and req.inflight_middle_chunks <= 0" in source
    assert "req.inflight_middle_chunks -= 1" in source


def test_every_import_from_sglang_is_named_here() -> None:
    """What the runtime imports from SGLang stands in one of the lists above."""
    named = {path.split(":")[0] + ":" + path.split(":")[1].split(".")[0] for path in [*CALLABLES, *NAMES, *ATTRIBUTES]}
    imported = set()
    for file in RUNTIME.rglob("*.py"):
        for module, names in re.findall(r"from (sglang(?:\.\w+)*) import ([\w, ]+)", file.read_text()):
            imported |= {f"{module}:{name.strip()}" for name in names.split(",")}
    unnamed = sorted(imported - named)
    assert not unnamed, f"name these in the contract: {unnamed}"
