"""Records what vLLM's Python frontend answers to the corpus, on the paced emulated engine. See script/record-parity."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx

from adapters.outbound.vllm_engine.emulator import EmulatorSettings, EngineCoreEmulator
from tests.fakes.scripted_engine_core import free_port
from tests.parity.answers import Answer, Json, Recorded, read_answer, read_reference, write_reference
from tests.parity.case import Case
from tests.parity.compared import changed
from tests.parity.comparison import answer_differences
from tests.parity.corpus import CORPUS
from tests.parity.engine import MAX_MODEL_LEN, VERSION, RememberingEngine
from tests.parity.model import tokenizer, write_model
from tests.parity.servers import SERVERS, flags
from tests.real_engine.processes import Program, wait_for

ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
STEP_MS = 20.0
"""So long that the frontend has mostly sent what a step brought before the next."""
SAME_ANSWERS, MOST_QUESTIONS = 3, 20
READY_SECONDS = 300.0
BODIES = {"/v1/completions": "CompletionRequest", "/v1/chat/completions": "ChatCompletionRequest"}


@contextmanager
def emulated(port: int) -> Iterator[RememberingEngine]:
    """An engine that says hello at that port."""
    engine = RememberingEngine(tokenizer().get_vocab_size())
    settings = EmulatorSettings(
        handshake_address=f"tcp://127.0.0.1:{port}",
        step_ms=STEP_MS,
        max_model_len=MAX_MODEL_LEN,
        vllm_version=VERSION,
        vocab_size=engine.vocab_size,
    )
    emulator = EngineCoreEmulator(settings, [engine])
    thread = Thread(target=emulator.run)
    thread.start()
    try:
        yield engine
    finally:
        emulator.stop()
        thread.join()


@contextmanager
def fastapi(vllm: Path, folder: Path, server: str) -> Iterator[tuple[httpx.Client, RememberingEngine]]:
    port, handshake_port = free_port(), free_port()
    address = ["--host", "127.0.0.1", "--port", str(port), "--data-parallel-address", "127.0.0.1"]
    apart = ["--data-parallel-rpc-port", str(handshake_port), "--data-parallel-size", "1"]
    apart += ["--data-parallel-size-local", "0", "--dtype", "bfloat16"]
    command: list[str | Path] = [vllm, "serve", write_model(folder / "model"), *flags(server), *address, *apart]
    program = Program(server, command, ENVIRONMENT, folder / f"{server}.log")
    try:
        with (
            emulated(handshake_port) as engine,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client,
        ):
            wait_for(lambda: program.exit_status is not None or _is_healthy(client), READY_SECONDS)
            assert _is_healthy(client), program.tail()
            yield client, engine
    finally:
        program.kill()


def _is_healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def ask(client: httpx.Client, engine: RememberingEngine, case: Case) -> Recorded:
    """A server that is held up joins chunks: what it streams so many times in a row is its answer."""
    answers = [_ask(client, engine, case)]
    for _ in range(MOST_QUESTIONS):
        if not case.streams or len(answers) == SAME_ANSWERS:
            return Recorded(name=case.name, request=dict(case.body), answer=answers[0])
        again = _ask(client, engine, case)
        answers = [again] if list(answer_differences(answers[-1], again)) else [*answers, again]
    raise AssertionError(f"{case.name}: answered otherwise each time")


def _ask(client: httpx.Client, engine: RememberingEngine, case: Case) -> Answer:
    engine.asked.clear()
    # a failure may close the connection, which the next request must not find out
    reply = client.post(case.path, json=case.body, headers={"connection": "close", **case.headers})
    return read_answer(reply, list(engine.asked))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vllm", type=Path, help="the program")
    parser.add_argument("--all", action="store_true", help="also what is recorded already")
    given = parser.parse_args()
    head, known = read_reference()
    asked = {case.name for case in CORPUS} if given.all else set(changed(known))
    recorded = [known[case.name] for case in CORPUS if case.name not in asked]
    fields: Json = head["fields"]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for server in SERVERS:
            cases = [case for case in CORPUS if case.server == server and case.name in asked]
            if not cases:
                continue
            with fastapi(given.vllm, Path(folder), server) as (client, engine):
                schemas = client.get("/openapi.json").json()["components"]["schemas"]
                fields = {path: list(schemas[name]["properties"]) for path, name in BODIES.items()}
                recorded += [ask(client, engine, case) for case in cases]
    order = [case.name for case in CORPUS]
    write_reference({"version": VERSION, "fields": fields}, sorted(recorded, key=lambda each: order.index(each.name)))
    sys.stdout.write(f"{len(asked)} of {len(recorded)} answers recorded in {time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
