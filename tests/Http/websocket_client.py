"""Talks to an echo server as another implementation of RFC 6455 does; WebSocketTest compares what it prints."""
import asyncio
import random
import sys

import websockets


async def main(address):
    rng = random.Random(1)
    async with websockets.connect(address, max_size=None, compression="deflate") as socket:
        await (await socket.ping())
        for index in range(100):
            text = "".join(rng.choice("abcäöü€😀") for _ in range(rng.randrange(20000)))
            await socket.send(text)
            assert await socket.recv() == text, index
            pieces = [rng.randbytes(rng.randrange(1, 30000)) for _ in range(rng.randrange(1, 5))]
            await socket.send(iter(pieces))
            assert await socket.recv() == b"".join(pieces), index
        await (await socket.ping(b"again"))
        await socket.close(4000, "done")
        extensions = socket.extensions if hasattr(socket, "extensions") else socket.protocol.extensions
        names = "".join(f", {one.name}" for one in extensions)
        print(f"200 messages, 2 pings, closed {socket.close_code}{names}")


asyncio.run(main(sys.argv[1]))
