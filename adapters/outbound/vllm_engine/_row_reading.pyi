from adapters.outbound.vllm_engine.row_forms import ReadRow

read_row: ReadRow
