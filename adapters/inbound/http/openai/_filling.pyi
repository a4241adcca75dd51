from adapters.inbound.http.openai.filling import FillRows

fill_rows: FillRows
