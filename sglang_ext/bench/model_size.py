"""How large a dense decoder is: what a forward pass reads and multiplies."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ModelSize(BaseModel):
    """Args:
    layer_weights: elements of all linear layers but the head.
    head_weights: elements of the head.
    layers: those with attention.
    query_width, kv_width: heads times their size, of queries, and of keys.
    item_bytes: of one element.
    vocabulary: number of ids.
    """

    model_config = ConfigDict(frozen=True)

    layer_weights: int
    head_weights: int
    layers: int
    query_width: int
    kv_width: int
    item_bytes: int
    vocabulary: int

    @property
    def kv_bytes(self) -> int:
        """Of one token, keys and values of all layers."""
        return 2 * self.layers * self.kv_width * self.item_bytes

    @classmethod
    def of(cls, path: str, dtype: str) -> ModelSize:
        """Args:
        path: a folder or a Hugging Face name; its weights are not read.
        dtype: in which it runs, as torch names it.
        """
        # A record is read without them.
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        config = AutoConfig.from_pretrained(path)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        head = model.get_output_embeddings()
        linears = [part for part in model.modules() if isinstance(part, torch.nn.Linear) and part is not head]
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return cls(
            layer_weights=sum(part.weight.numel() for part in linears),
            head_weights=head.weight.numel(),
            layers=config.num_hidden_layers,
            query_width=config.num_attention_heads * size,
            kv_width=config.num_key_value_heads * size,
            item_bytes=getattr(torch, dtype).itemsize,
            vocabulary=config.vocab_size,
        )
