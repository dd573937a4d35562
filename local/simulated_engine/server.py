"""The HTTP face of the simulated engine: vLLM's endpoints, and the test's control port."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from local.simulated_engine.arguments import Arguments
from local.simulated_engine.assembly import VERSION
from local.simulated_engine.faults import PageUnreachable, spoil_metrics
from local.simulated_engine.openai import Answering, Asked, RequestInvalid, read_request
from local.simulated_engine.service import EngineDead, Service
from local.simulated_engine.wording import Answer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Endpoints:
    """Answers as vLLM's API server does."""

    def __init__(self, service: Service, arguments: Arguments) -> None:
        self._service = service
        self._arguments = arguments
        self._numbers = itertools.count()

    def application(self) -> web.Application:
        """The application for the serving port."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/health", self._health),
                web.get("/version", self._version),
                web.get("/metrics", self._metrics),
                web.get("/v1/models", self._models),
                web.post("/v1/completions", self._complete),
                web.post("/v1/chat/completions", self._chat),
            ]
        )
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        key = self._arguments.api_key
        wants_key = key is not None and request.path.startswith("/v1/")
        if wants_key and request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        try:
            return await handler(request)
        except RequestInvalid as refusal:
            return _error(str(refusal), refusal.status)
        except EngineDead as death:
            return _error(f"EngineCore encountered an issue: {death}", 500)

    async def _health(self, _: web.Request) -> web.Response:
        well = self._service.death is None and self._service.engine.world.healthy
        return web.Response(status=200 if well else 503)

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": VERSION})

    async def _metrics(self, request: web.Request) -> web.Response:
        try:
            page = spoil_metrics(self._service.metrics.page(), self._service.engine.world.page)
        except PageUnreachable:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        return web.Response(text=page, content_type="text/plain")

    async def _models(self, _: web.Request) -> web.Response:
        models = [
            {"id": name, "object": "model", "owned_by": "vllm", "root": self._arguments.model}
            for name in self._arguments.served_names
        ]
        return web.json_response({"object": "list", "data": models})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, chat=False)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, chat=True)

    async def _answer(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        if self._service.draining:
            return _error("the server is shutting down", 500)
        try:
            body = await request.json()
        except ValueError as error:
            raise RequestInvalid(f"the body is not JSON: {error}") from error
        asked = read_request(body, chat=chat, models=self._arguments.served_names)
        identity = f"{'chatcmpl' if chat else 'cmpl'}-{next(self._numbers)}"
        answering = Answering(asked, identity, int(time.time()))
        if asked.stream:
            return await self._stream(request, asked, answering)
        answer, text = self._words(asked), ""
        async for count in self._generate(asked):
            text += answer.next_words(count)
        return web.json_response(answering.whole(text, asked.limit))

    async def _stream(
        self, request: web.Request, asked: Asked, answering: Answering
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def send(chunk: object) -> None:
            if chunk is not None:
                await response.write(f"data: {json.dumps(chunk)}\n\n".encode())

        await send(answering.opening())
        answer, generated = self._words(asked), 0
        try:
            async for count in self._service.generate(
                asked.prompt, asked.prompt_tokens, asked.limit
            ):
                generated += count
                await send(answering.part(answer.next_words(count), generated))
        except EngineDead as death:
            await send({"error": {"message": str(death), "code": 500}})
        await send(answering.closing(generated))
        await response.write(b"data: [DONE]\n\n")
        return response

    def _words(self, asked: Asked) -> Answer:
        return Answer(asked.prompt, self._service.engine.world.speaker)

    def _generate(self, asked: Asked) -> AsyncIterator[int]:
        return self._service.generate(asked.prompt, asked.prompt_tokens, asked.limit)


def control(service: Service) -> web.Application:
    """The application for the control port: GET and PATCH /world, in JSON as `World` has it."""

    async def look(_: web.Request) -> web.Response:
        return web.Response(text=service.engine.world.to_json(), content_type="application/json")

    async def change(request: web.Request) -> web.Response:
        try:
            service.change(await request.json())
        except (ValueError, TypeError) as error:
            return web.Response(text=f"{error}\n", status=400)
        return await look(request)

    application = web.Application()
    application.add_routes([web.get("/world", look), web.patch("/world", change)])
    return application


def _error(message: str, status: int) -> web.Response:
    kind = {404: "NotFoundError", 500: "InternalServerError"}.get(status, "BadRequestError")
    error = {"message": message, "type": kind, "param": None, "code": status}
    return web.json_response({"error": error}, status=status)
