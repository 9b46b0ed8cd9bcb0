"""The thread pool of the CPU kernels and their flat copy, in LLVM IR.

Native threads, since one that needs the GIL starts late: a pool of Python's threads gains nothing
below 16 MB (``docs/machine_code.md`` has the figures).

``serve(pool)``
    What a thread of the pool does until the process ends: it waits for a place in a job, then takes
    slices until none is left.
``run(pool, kernel, records, stride, count, helpers)``
    Call ``kernel``, a ``void(int64)``, with the address of each of ``count`` records. At most
    ``helpers`` threads join the caller, who takes slices from the first moment, waits for no thread
    that has not begun, and closes the job when no slice is left. Where the pool is another caller's
    meanwhile, the caller does all slices alone.
``move(run)``
    Copy whole lines of 64 bytes past the cache; a kernel whose record is ``%run``.
"""

from __future__ import annotations

from ctypes import Structure, c_char, c_int64

__all__ = ["FUNCTIONS", "Pool", "source"]

FUNCTIONS = ("serve", "run", "move")


class Pool(Structure):
    """What the threads share.

    Attributes
    ----------
    mutex, work, done : bytes
        A mutex and two conditions: there is a place in a job; the last helper has left. More bytes
        than any system's.
    kernel, records, stride, count : int
        The job, as `run` is told it.
    places : int
        How many threads may still join.
    active : int
        How many have joined and not left.
    next : int
        The next slice. Alone on its cache line, as every thread counts in it.
    busy : int
        1 while a caller has the pool.
    """

    _fields_ = (
        ("mutex", c_char * 128),
        ("work", c_char * 128),
        ("done", c_char * 128),
        ("kernel", c_int64),
        ("records", c_int64),
        ("stride", c_int64),
        ("count", c_int64),
        ("places", c_int64),
        ("active", c_int64),
        ("_before_next", c_char * 64),
        ("next", c_int64),
        ("_behind_next", c_char * 64),
        ("busy", c_int64),
    )


_IR = """
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)

define internal void @drain(ptr %pool) {
FIELDS
  %kernel_word = load i64, ptr %pool.kernel
  %kernel = inttoptr i64 %kernel_word to ptr
  %records = load i64, ptr %pool.records
  %stride = load i64, ptr %pool.stride
  %count = load i64, ptr %pool.count
  br label %take
take:
  %i = atomicrmw add ptr %pool.next, i64 1 seq_cst
  %more = icmp slt i64 %i, %count
  br i1 %more, label %work, label %done
work:
  %offset = mul i64 %i, %stride
  %record = add i64 %records, %offset
  call void %kernel(i64 %record)
  br label %take
done:
  ret void
}

define ptr @serve(ptr %pool) {
FIELDS
  %locked = call i32 @pthread_mutex_lock(ptr %pool.mutex)
  br label %look
look:
  %places = load i64, ptr %pool.places
  %none = icmp eq i64 %places, 0
  br i1 %none, label %sleep, label %join
sleep:
  %woken = call i32 @pthread_cond_wait(ptr %pool.work, ptr %pool.mutex)
  br label %look
join:
  %fewer = sub i64 %places, 1
  store i64 %fewer, ptr %pool.places
  %before = load i64, ptr %pool.active
  %with = add i64 %before, 1
  store i64 %with, ptr %pool.active
  %free = call i32 @pthread_mutex_unlock(ptr %pool.mutex)
  call void @drain(ptr %pool)
  %again = call i32 @pthread_mutex_lock(ptr %pool.mutex)
  %active = load i64, ptr %pool.active
  %without = sub i64 %active, 1
  store i64 %without, ptr %pool.active
  %last = icmp eq i64 %without, 0
  br i1 %last, label %tell, label %look
tell:
  %told = call i32 @pthread_cond_signal(ptr %pool.done)
  br label %look
}

define void @run(ptr %pool, i64 %kernel, i64 %records, i64 %stride, i64 %count, i64 %helpers) {
FIELDS
  %swap = cmpxchg ptr %pool.busy, i64 0, i64 1 seq_cst seq_cst
  %ours = extractvalue { i64, i1 } %swap, 1
  br i1 %ours, label %post, label %alone
alone:
  %function = inttoptr i64 %kernel to ptr
  br label %each
each:
  %i = phi i64 [ 0, %alone ], [ %j, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %out
one:
  %offset = mul i64 %i, %stride
  %record = add i64 %records, %offset
  call void %function(i64 %record)
  %j = add i64 %i, 1
  br label %each
post:
  %locked = call i32 @pthread_mutex_lock(ptr %pool.mutex)
  store i64 %kernel, ptr %pool.kernel
  store i64 %records, ptr %pool.records
  store i64 %stride, ptr %pool.stride
  store i64 %count, ptr %pool.count
  store i64 %helpers, ptr %pool.places
  store i64 0, ptr %pool.next
  %free = call i32 @pthread_mutex_unlock(ptr %pool.mutex)
  %told = call i32 @pthread_cond_broadcast(ptr %pool.work)
  call void @drain(ptr %pool)
  %again = call i32 @pthread_mutex_lock(ptr %pool.mutex)
  store i64 0, ptr %pool.places
  br label %look
look:
  %active = load i64, ptr %pool.active
  %none = icmp eq i64 %active, 0
  br i1 %none, label %leave, label %wait
wait:
  %woken = call i32 @pthread_cond_wait(ptr %pool.done, ptr %pool.mutex)
  br label %look
leave:
  %left = call i32 @pthread_mutex_unlock(ptr %pool.mutex)
  store atomic i64 0, ptr %pool.busy seq_cst, align 8
  br label %out
out:
  ret void
}

%run = type { ptr, ptr, i64 }  ; destination, in whole lines; source; bytes, in whole lines

define void @move(i64 %record) {
entry:
  %run = inttoptr i64 %record to ptr
  %src_at = getelementptr %run, ptr %run, i32 0, i32 1
  %nbytes_at = getelementptr %run, ptr %run, i32 0, i32 2
  %dst = load ptr, ptr %run
  %src = load ptr, ptr %src_at
  %nbytes = load i64, ptr %nbytes_at
  br label %look
look:
  %at = phi i64 [ 0, %entry ], [ %next, %line ]
  %more = icmp ult i64 %at, %nbytes
  br i1 %more, label %line, label %done
line:
  %from = getelementptr i8, ptr %src, i64 %at
  %to = getelementptr i8, ptr %dst, i64 %at
  %value = load <8 x i64>, ptr %from, align 1
  store <8 x i64> %value, ptr %to, align 64, !nontemporal !0
  %next = add i64 %at, 64
  br label %look
done:
  fence seq_cst
  ret void
}
!0 = !{i32 1}
"""


def source() -> str:
    """The whole as LLVM IR, with the addresses of a `Pool`'s fields at the head of a function."""
    fields = "\n".join(
        f"  %pool.{name} = getelementptr i8, ptr %pool, i64 {getattr(Pool, name).offset}"
        for name, *_ in Pool._fields_
    )
    return _IR.replace("FIELDS", f"entry:\n{fields}")
