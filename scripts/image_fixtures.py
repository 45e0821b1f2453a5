#!/usr/bin/env python3
"""Writes tests/data/images: small images of every kind, and digests of what Pillow makes of them and of other images.

python3 scripts/image_fixtures.py tests/data/images [FOLDER_OF_OTHER_IMAGES]   (needs pillow and numpy)
"""
import hashlib
import io
import json
import pathlib
import random
import struct
import sys
import warnings
import zlib

import numpy as np
from PIL import Image, ImageOps, __version__

rng = np.random.default_rng(0)
draw = random.Random(0)
warnings.simplefilter("ignore")


def picture(width, height, channels):
    y, x = np.mgrid[0:height, 0:width]
    planes = [(x * 7 + y * 3 * (k + 1) + rng.integers(0, 40, (height, width))) % 256 for k in range(channels)]
    return Image.fromarray(np.squeeze(np.stack(planes, -1).astype(np.uint8)))


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def rows(bits, width, height):
    return b"".join(b"\0" + draw.randbytes((width * bits + 7) // 8) for _ in range(height))


def interlaced(bits, width, height):
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    sizes = [((width - x + dx - 1) // dx, (height - y + dy - 1) // dy) for x, y, dx, dy in passes]
    return b"".join(rows(bits, w, h) for w, h in sizes if w > 0 and h > 0)


def png(width, height, bits, color, pixels, chunks=b"", interlace=0):
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks + chunk(b"IDAT", zlib.compress(pixels)) +
            chunk(b"IEND", b""))


def with_wrong_sum(data, name):
    """A PNG whose chunk `name` has one bit of its sum flipped."""
    at = data.index(name)
    end = at + 4 + struct.unpack(">I", data[at - 4:at])[0]
    return data[:end] + bytes([data[end] ^ 1]) + data[end + 1:]


def images():
    """Name, bytes."""
    rgb, rgba, la, grey = picture(29, 19, 3), picture(29, 19, 4), picture(23, 13, 2), picture(23, 13, 1)
    for name, image in {"rgb": rgb, "rgba": rgba, "grey_alpha": la, "grey": grey, "bits": grey.convert("1"),
                        "palette": rgb.quantize(50), "palette_4": rgb.quantize(16), "palette_2": rgb.quantize(4),
                        "palette_1": rgb.quantize(2)}.items():
        yield name + ".png", saved(image, "PNG")
    yield "clear_color.png", saved(rgb, "PNG", transparency=(1, 2, 3))
    yield "clear_grey.png", saved(grey, "PNG", transparency=3)
    yield "clear_index.png", saved(rgb.quantize(20), "PNG", transparency=3)
    yield "animated.png", saved(rgb, "PNG", save_all=True, append_images=[rgb.rotate(90)])
    for color, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
        yield f"deep_{color}.png", png(9, 7, 16, color, rows(16 * channels, 9, 7))
        yield f"interlaced_deep_{color}.png", png(13, 11, 16, color, interlaced(16 * channels, 13, 11), interlace=1)
        yield f"interlaced_{color}.png", png(13, 11, 8, color, interlaced(8 * channels, 13, 11), interlace=1)
    for bits in (1, 2, 4):
        yield f"grey_{bits}.png", png(9, 7, bits, 0, rows(bits, 9, 7))
        yield f"interlaced_grey_{bits}.png", png(13, 11, bits, 0, interlaced(bits, 13, 11), interlace=1)
    palette = chunk(b"PLTE", draw.randbytes(9))
    yield "beyond_the_palette.png", png(9, 7, 8, 3, rows(8, 9, 7), palette)
    yield "beyond_the_palette_4.png", png(9, 7, 4, 3, rows(4, 9, 7), palette)
    yield "gamma.png", png(9, 7, 8, 2, rows(24, 9, 7), chunk(b"gAMA", struct.pack(">I", 22000)))
    yield "wrong_sum.png", with_wrong_sum(png(9, 7, 8, 2, rows(24, 9, 7)), b"IDAT")
    yield "without_end.png", saved(rgb, "PNG")[:-12]
    for quality in (10, 50, 95, 100):
        for sampling in (0, 1, 2):
            for progressive in (False, True):
                name = f"q{quality}_s{sampling}{'_progressive' if progressive else ''}.jpg"
                yield name, saved(rgb, "JPEG", quality=quality, subsampling=sampling, progressive=progressive)
    yield "grey.jpg", saved(grey, "JPEG")
    yield "rgb.jpg", saved(rgb, "JPEG", keep_rgb=True)
    yield "inks.jpg", saved(rgb.convert("CMYK"), "JPEG")
    yield "inks_progressive.jpg", saved(rgb.convert("CMYK"), "JPEG", progressive=True)
    yield "restarts.jpg", saved(rgb, "JPEG", restart_marker_blocks=2)
    yield "more_bytes.jpg", saved(rgb, "JPEG") + b"more"
    yield "lossless.webp", saved(rgb, "WEBP", lossless=True)
    yield "lossless_alpha.webp", saved(rgba, "WEBP", lossless=True)
    yield "lossless_exact.webp", saved(rgba, "WEBP", lossless=True, exact=True)
    yield "lossy.webp", saved(rgb, "WEBP")
    yield "lossy_alpha.webp", saved(rgba, "WEBP")
    yield "animated.webp", saved(rgba, "WEBP", save_all=True, append_images=[rgba.rotate(90)])
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = turn
        yield f"turned_{turn}.jpg", saved(rgb, "JPEG", exif=exif)
        yield f"turned_{turn}.png", saved(rgb.quantize(8), "PNG", exif=exif)
        yield f"turned_{turn}.webp", saved(rgb, "WEBP", exif=exif)
    # Refused.
    yield "cut.jpg", saved(rgb, "JPEG")[:-40]
    yield "without_end.jpg", saved(rgb, "JPEG")[:-2]
    yield "cut.png", saved(rgb, "PNG")[:-400]
    yield "cut.webp", saved(rgb, "WEBP")[:-60]
    yield "wrong_header.png", with_wrong_sum(png(9, 7, 8, 2, rows(24, 9, 7)), b"IHDR")
    yield "huge.png", png(60000, 60000, 8, 2, b"")
    yield "no_pixels.png", png(0, 7, 8, 2, b"")
    yield "animated.gif", saved(rgb, "GIF")
    yield "little.tiff", saved(rgb, "TIFF")
    yield "bitmap.bmp", saved(rgb, "BMP")


def digest(image):
    return {"width": image.width, "height": image.height, "sha256": hashlib.sha256(image.tobytes()).hexdigest()}


def what_pillow_makes(data):
    try:
        image = Image.open(io.BytesIO(data))
        image.load()
    except Exception as error:  # Pillow has many kinds
        return {"refused": type(error).__name__}
    rgb = image.convert("RGB")
    return {"mode": image.mode, "rgb": digest(rgb), "upright": digest(ImageOps.exif_transpose(image).convert("RGB")),
            "smaller": digest(rgb.resize((max(1, rgb.width // 3), max(1, rgb.height // 2)))),
            "larger": digest(rgb.resize((rgb.width * 2 + 1, rgb.height + 3)))}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, data in images():
        (folder / name).write_bytes(data)
        made[name] = what_pillow_makes(data)
    found = {"pillow": __version__, "made": made}
    if len(sys.argv) > 2:
        other = pathlib.Path(sys.argv[2])
        files = [f for f in sorted(other.rglob("*")) if f.suffix in (".png", ".jpg", ".webp", ".gif", ".tif")]
        found["other"] = {str(f.relative_to(other)): what_pillow_makes(f.read_bytes()) for f in files}
    (folder / "pillow.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
