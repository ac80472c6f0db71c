"""Random messages, as google/protobuf for Python writes them: a line each with name, bytes and JSON."""

import base64
import importlib
import random
import struct
import sys

from google.protobuf import json_format

directory, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, directory)
Everything = importlib.import_module("everything_pb2").Everything
Legacy = importlib.import_module("legacy_pb2").Legacy
Timestamp = importlib.import_module("google.protobuf.timestamp_pb2").Timestamp

chance = random.Random(seed)
TEXTS = ["", "x", "zwölf", "日本語", "\U0001f9f5", "7", "-1", "007", "true", "a" * 130, "\0\n\"\\"]


def integer(bits, signed):
    number = chance.choice([0, 1, chance.getrandbits(7), chance.getrandbits(bits), (1 << bits) - 1])
    return number - (1 << bits - 1) if signed else number


def scalar(field):
    kind = field.type
    if kind == field.TYPE_FLOAT:
        return struct.unpack("f", struct.pack("f", chance.choice([0.0, 1.5, -2.0, chance.random(), 3e38])))[0]
    if kind == field.TYPE_DOUBLE:
        return chance.choice([0.0, -0.0, 1.0, 228.53, chance.random() * 1e300, float("inf"), 5e-324])
    if kind == field.TYPE_BOOL:
        return chance.random() < 0.5
    if kind == field.TYPE_STRING:
        return chance.choice(TEXTS)
    if kind == field.TYPE_BYTES:
        return bytes(chance.getrandbits(8) for _ in range(chance.choice([0, 1, 2, 200])))
    if kind == field.TYPE_ENUM:
        known = chance.choice(field.enum_type.values).number
        return known if field.enum_type.is_closed or chance.random() < 0.8 else 99
    bits = 64 if kind in (field.TYPE_INT64, field.TYPE_UINT64, field.TYPE_SINT64, field.TYPE_FIXED64, field.TYPE_SFIXED64) else 32
    unsigned = kind in (field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_FIXED32, field.TYPE_FIXED64)
    return integer(bits, not unsigned)


def set_well_known(message):
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds = chance.randrange(-62135596800, 253402300800)
        message.nanos = chance.choice([0, 1, 500_000_000, 123_456_000, 999_999_999])
    elif name == "google.protobuf.Duration":
        sign = chance.choice([1, -1])
        message.seconds = sign * chance.randrange(0, 315576000000)
        message.nanos = sign * chance.choice([0, 1, 999_999_999])
    elif name == "google.protobuf.Struct":
        message.update({text: value() for text in chance.sample(TEXTS, 3)})
    elif name == "google.protobuf.Value":
        json_format.ParseDict(value(), message)
    elif name == "google.protobuf.ListValue":
        message.extend([value() for _ in range(chance.randrange(3))])
    elif name == "google.protobuf.FieldMask":
        message.paths.extend(["a.b_c", "d"][: chance.randrange(3)])
    elif name == "google.protobuf.Any":
        if chance.random() < 0.5:
            message.Pack(Timestamp(seconds=1, nanos=5000))
        else:
            message.Pack(Everything(int32=5, texts=["x"]))
    else:
        return False
    return True


def value(depth=3):
    options = [None, True, 1.5, -3.0, "text", [], {}]
    if depth:
        options += [[value(depth - 1), None], {"k": value(depth - 1)}, {"0": 1.0, "1": value(depth - 1)}]
    return chance.choice(options)


def fill(message, depth):
    for field in message.DESCRIPTOR.fields:
        required = field.has_presence and field.number == 1 and field.file.name == "legacy.proto"
        if chance.random() < 0.6 and not required:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries = getattr(message, field.name)
            key, mapped = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            for _ in range(chance.randrange(4)):
                if mapped.message_type is None:
                    entries[scalar(key)] = scalar(mapped)
                elif depth:
                    fill(entries[scalar(key)], depth - 1)
        elif field.is_repeated:
            for _ in range(chance.randrange(4)):
                if field.message_type is None:
                    getattr(message, field.name).append(scalar(field))
                elif depth:
                    fill(getattr(message, field.name).add(), depth - 1)
        elif field.message_type is not None:
            if depth:
                child = getattr(message, field.name)
                child.SetInParent()
                if not set_well_known(child):
                    fill(child, depth - 1)
        else:
            setattr(message, field.name, scalar(field))


for _ in range(count):
    message = chance.choice([Everything, Everything, Legacy])()
    fill(message, 3)
    data = message.SerializeToString(deterministic=True)
    json = json_format.MessageToJson(message, indent=None, ensure_ascii=False)
    print(message.DESCRIPTOR.full_name, base64.b64encode(data).decode(), base64.b64encode(json.encode()).decode())
