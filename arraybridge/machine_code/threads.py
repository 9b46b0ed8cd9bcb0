"""The thread pool of the CPU kernels and their flat copy, in LLVM IR.

The threads are native, since a thread that needs the GIL starts late where another one computes
(``docs/native_code.md`` has the figures).

``drain(job)``
    Call the job's kernel with the address of each record that nobody has taken yet.
``serve(pool)``
    What a thread of the pool does until the process ends: wait for a place in a job, then drain it.
``run(pool, job, helpers)``
    Drain a job with at most ``helpers`` threads of the pool, and return when all is done. The
    caller begins at once, and waits for no thread that has not begun. Where another caller has the
    pool, this one does its job alone.
``move(run)``
    Copy whole lines of 64 bytes past the cache; a kernel whose record is a ``%run``.
``carry(run)``
    Copy the same as C does.
"""

from __future__ import annotations

from ctypes import Structure, c_char, c_int64, c_void_p

FUNCTIONS = ("drain", "serve", "run", "move", "carry")


class Job(Structure):
    """A kernel, the address of a ``void(int64)``, and the records to call it with.

    There are `count` records, `stride` bytes apart; `next` is the next one, on a cache line of its
    own, as every thread counts in it.
    """

    _fields_ = (
        ("kernel", c_void_p),
        ("records", c_int64),
        ("stride", c_int64),
        ("count", c_int64),
        ("_line", c_char * 64),
        ("next", c_int64),
        ("_end", c_char * 64),
    )


class Pool(Structure):
    """What the threads share; all zeros but for the mutex and the conditions.

    The conditions: there is a place in a job (`work`); the last helper has left (`done`). They have
    more bytes than any system's. Threads may still join the job for so many `places`; `active` have
    joined and not left. `busy` is 1 while a caller has the pool.
    """

    _fields_ = (
        ("mutex", c_char * 128),
        ("work", c_char * 128),
        ("done", c_char * 128),
        ("job", c_void_p),
        ("places", c_int64),
        ("active", c_int64),
        ("busy", c_int64),
    )


_IR = """
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)

define void @drain(ptr %job) {
JOB
  %kernel = load ptr, ptr %job.kernel
  %records = load i64, ptr %job.records
  %stride = load i64, ptr %job.stride
  %count = load i64, ptr %job.count
  br label %take
take:
  %i = atomicrmw add ptr %job.next, i64 1 seq_cst
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
POOL
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
  %job = load ptr, ptr %pool.job
  %free = call i32 @pthread_mutex_unlock(ptr %pool.mutex)
  call void @drain(ptr %job)
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

define void @run(ptr %pool, ptr %job, i64 %helpers) {
POOL
  %swap = cmpxchg ptr %pool.busy, i64 0, i64 1 seq_cst seq_cst
  %ours = extractvalue { i64, i1 } %swap, 1
  br i1 %ours, label %post, label %alone
alone:
  call void @drain(ptr %job)
  ret void
post:
  %locked = call i32 @pthread_mutex_lock(ptr %pool.mutex)
  store ptr %job, ptr %pool.job
  store i64 %helpers, ptr %pool.places
  %free = call i32 @pthread_mutex_unlock(ptr %pool.mutex)
  %told = call i32 @pthread_cond_broadcast(ptr %pool.work)
  call void @drain(ptr %job)
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
  ret void
}

%run = type { ptr, ptr, i64 }  ; destination, at a whole line; source; bytes, in whole lines

define void @move(ptr %run) {
entry:
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

define void @carry(ptr %run) {
  %src_at = getelementptr %run, ptr %run, i32 0, i32 1
  %nbytes_at = getelementptr %run, ptr %run, i32 0, i32 2
  %dst = load ptr, ptr %run
  %src = load ptr, ptr %src_at
  %nbytes = load i64, ptr %nbytes_at
  %copied = call ptr @memcpy(ptr %dst, ptr %src, i64 %nbytes)
  ret void
}
!0 = !{i32 1}
"""


def source() -> str:
    """Return the LLVM IR, with the addresses of a struct's fields at the head of a function."""
    text = _IR
    for struct in (Job, Pool):
        it = f"%{struct.__name__.lower()}"
        fields = "".join(
            f"\n  {it}.{name} = getelementptr i8, ptr {it}, i64 {getattr(struct, name).offset}"
            for name, *_ in struct._fields_
        )
        text = text.replace(struct.__name__.upper(), f"entry:{fields}")
    return text
