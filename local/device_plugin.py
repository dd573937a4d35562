"""A kubelet device plugin that offers simulated `amd.com/gpu` devices.

Like AMD's, it sets no environment variable. Where AMD's would hand out /dev/kfd, this one mounts
the vLLM CPU environment, read-only, so that no image has to carry its 5.5 GB.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from local import vllm_environment
from local.devices import Devices, read
from local.layout import DEVICE_PLUGINS

RESOURCE = "amd.com/gpu"
ENDPOINT = "amd-gpu.sock"
KUBELET_ENDPOINT = "kubelet.sock"
ENGINE_FOLDER = "/opt/vllm"
POLL = 0.2  # seconds between looks at the devices' file and the kubelet's socket

messages, services = grpc.protos_and_services("local/device_plugin.proto")


class DevicePlugin(services.DevicePluginServicer):  # type: ignore[misc, name-defined]
    """The three calls that the kubelet makes."""

    def GetDevicePluginOptions(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ANN401
        return messages.DevicePluginOptions()

    def ListAndWatch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802, ANN401
        """Sends the devices now and after each change, for as long as the kubelet listens."""
        sent: Devices | None = None
        while context.is_active():
            devices = read()
            if devices != sent:
                sent = devices
                yield _list(devices)
            time.sleep(POLL)

    def Allocate(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ANN401
        answer = messages.AllocateResponse()
        for _ in request.container_requests:
            answer.container_responses.append(_allocation())
        return answer


def _list(devices: Devices) -> Any:  # noqa: ANN401
    return messages.ListAndWatchResponse(
        devices=[
            messages.Device(ID=name, health="Unhealthy" if name in devices.unhealthy else "Healthy")
            for name in devices.ids
        ]
    )


def _allocation() -> Any:  # noqa: ANN401
    folder = vllm_environment.folder()
    if not (folder / vllm_environment.READY).exists():
        return messages.ContainerAllocateResponse()
    mount = messages.Mount(container_path=ENGINE_FOLDER, host_path=str(folder), read_only=True)
    return messages.ContainerAllocateResponse(mounts=[mount])


def _register() -> None:
    with grpc.insecure_channel(f"unix://{DEVICE_PLUGINS / KUBELET_ENDPOINT}") as channel:
        services.RegistrationStub(channel).Register(
            messages.RegisterRequest(version="v1beta1", endpoint=ENDPOINT, resource_name=RESOURCE),
            timeout=10,
        )


def serve() -> None:
    """Serves until the kubelet's socket changes: a new kubelet has emptied the folder."""
    kubelet = DEVICE_PLUGINS / KUBELET_ENDPOINT
    while not kubelet.exists():
        time.sleep(POLL)
    born = kubelet.stat().st_ino
    server = grpc.server(ThreadPoolExecutor(4))
    services.add_DevicePluginServicer_to_server(DevicePlugin(), server)
    server.add_insecure_port(f"unix://{DEVICE_PLUGINS / ENDPOINT}")
    server.start()
    _register()
    print("registered", flush=True)
    while kubelet.exists() and kubelet.stat().st_ino == born:
        time.sleep(POLL)
    server.stop(grace=0).wait()


if __name__ == "__main__":
    while True:
        serve()
