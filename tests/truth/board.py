"""The driver's side of the board (see act.c): gives one order at a time to one actor."""
import ctypes
import mmap
import os
import struct

BOARD = struct.Struct("=IIIIq6qqII")  # the layout of struct board in act.c
TEXT_BYTES = 8192
SIZE = (BOARD.size + 3 * TEXT_BYTES + 4095) // 4096 * 4096
CALL, CLONE, EXEC, EXIT = range(4)
FUTEX, FUTEX_WAIT, FUTEX_WAKE = 202, 0, 1
HANG_S = 30

libc = ctypes.CDLL(None, use_errno=True)


class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


PAUSE = Timespec(0, 50_000_000)


class Stopped(Exception):
    """The program in the sandbox no longer answers."""


class Board:
    """Maps the file of the board. alive() returns whether the program in the sandbox is still
    running."""

    def __init__(self, path, alive):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.map = mmap.mmap(fd, SIZE)
        os.close(fd)
        self.alive = alive
        self.view = ctypes.c_char.from_buffer(self.map)
        self.at = ctypes.addressof(self.view)
        self.turn = 0
        self.seen = 0

    def done(self):
        del self.view
        self.map.close()

    def wait(self, answers):
        """Waits for `answers` more answers. Returns the result in the last one."""
        self.seen += answers
        for _ in range(HANG_S * 20):
            count = self.answered()
            if count >= self.seen:
                return self.ret()
            libc.syscall(FUTEX, ctypes.c_void_p(self.at + 4), FUTEX_WAIT, count,
                         ctypes.byref(PAUSE), None, 0)
            if not self.alive():
                break
        if self.answered() >= self.seen:
            return self.ret()
        raise Stopped(f"answer {self.seen} never came")

    def check(self):
        """Raises Stopped if there was one answer too many: each later answer would be read as that
        of the next order."""
        if self.answered() != self.seen:
            raise Stopped(f"{self.answered()} answers to orders that have {self.seen}")

    def answered(self):
        return struct.unpack_from("=I", self.map, 4)[0]

    def ret(self):
        return BOARD.unpack_from(self.map)[11]

    def newborn(self):
        """Returns pid and tid (those inside the sandbox) of the actor that began last."""
        return BOARD.unpack_from(self.map)[12:14]

    def order(self, actor, order, number, args, texts, answers=1):
        """Gives one order and returns its result. `args` are numbers, or ("text", n) for
        texts[n]."""
        mask, values = 0, [0] * 6
        for i, a in enumerate(args):
            if isinstance(a, tuple):
                mask |= (a[1] + 1) << (2 * i)
            else:
                values[i] = a
        for i, text in enumerate(texts):
            at = BOARD.size + i * TEXT_BYTES
            self.map[at:at + len(text) + 1] = text + b"\0"
        self.check()
        self.turn += 1
        struct.pack_into("=IIq6q", self.map, 8, order, mask, number, *values)
        # `turn` must change in a single store. struct.pack_into() writes zeros first: actor 0 could
        # read them as its turn, and execute the order twice.
        ctypes.c_uint32.from_address(self.at).value = self.turn << 8 | actor
        libc.syscall(FUTEX, ctypes.c_void_p(self.at), FUTEX_WAKE, 1 << 30, None, None, 0)
        return self.wait(answers)
