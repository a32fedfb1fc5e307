"""Small model configurations for tests, written from public knowledge."""

from __future__ import annotations

from typing import Any

QWEN3_06B: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 40960, "torch_dtype": "bfloat16", "intermediate_size": 3072,
}  # fmt: skip

QWEN25_7B: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768,
    "sliding_window": 131072, "use_sliding_window": False, "torch_dtype": "bfloat16", "intermediate_size": 18944,
}  # fmt: skip

MISTRAL_7B_V01: dict[str, Any] = {
    "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 4096, "vocab_size": 32000,
    "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "intermediate_size": 14336,
}  # fmt: skip

GPT_OSS_20B: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128, "vocab_size": 201088,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip

DEEPSEEK_V2_LITE: dict[str, Any] = {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 2048,
    "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "kv_lora_rank": 512,
    "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400,
    "max_position_embeddings": 163840, "torch_dtype": "bfloat16",
}  # fmt: skip

QWEN35_35B: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe",
    "text_config": {
        "model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "mamba_ssm_dtype": "float32", "vocab_size": 248320,
        "max_position_embeddings": 262144, "torch_dtype": "bfloat16",
    },
}  # fmt: skip

JAMBA: dict[str, Any] = {
    "architectures": ["JambaForCausalLM"], "model_type": "jamba", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_period": 8, "attn_layer_offset": 4,
    "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "vocab_size": 65536,
    "max_position_embeddings": 262144, "torch_dtype": "bfloat16",
}  # fmt: skip

DECODER: dict[str, Any] = {
    "hidden_size": 1024, "intermediate_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4,
    "vocab_size": 32003, "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "num_hidden_layers": 6,
}  # fmt: skip

LATENT: dict[str, Any] = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "qk_nope_head_dim": 128,
}

QWEN3_NEXT: dict[str, Any] = {
    **DECODER, "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 2048,
    "num_hidden_layers": 8, "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
}  # fmt: skip

DEEPSEEK_V32: dict[str, Any] = {
    **DECODER, **LATENT, "architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32",
    "num_hidden_layers": 4, "num_attention_heads": 128, "num_key_value_heads": 128, "index_topk": 2048,
    "index_head_dim": 128, "max_position_embeddings": 163840,
}  # fmt: skip

GLM_DSA: dict[str, Any] = {
    **DEEPSEEK_V32, "architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa", "num_hidden_layers": 12,
}  # fmt: skip

GEMMA4: dict[str, Any] = {
    **DECODER, "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 256, "global_head_dim": 512, "num_hidden_layers": 42,
    "num_kv_shared_layers": 18, "sliding_window": 512, "max_position_embeddings": 131072,
    "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 7,
}  # fmt: skip
