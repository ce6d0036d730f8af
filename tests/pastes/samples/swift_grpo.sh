CUDA_VISIBLE_DEVICES=0,1,2,3 \
NPROC_PER_NODE=4 \
swift rlhf \
    --rlhf_type grpo \
    --model Qwen/Qwen2-7B-Instruct \
    --train_type lora \
    --lora_rank 8 \
    --use_vllm true \
    --vllm_gpu_memory_utilization 0.8 \
    --torch_dtype bfloat16 \
    --per_device_train_batch_size 2 \
    --max_length 4096 --max_completion_length=1024 \
    --deepspeed zero2
