/* Threads that Python does not know, which call deleters; and one that calls its own at the end. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct Tensor { /* the head of DLManagedTensorVersioned */
    uint64_t version;
    void *context;
    void (*deleter)(struct Tensor *);
} Tensor;
typedef void (*Function)(void *);
typedef struct { Function *functions; void **arguments; size_t count, start, step; } Part;

static void *run(void *given)
{
    Part *part = given;
    for (size_t i = part->start; i < part->count; i += part->step)
        part->functions[i](part->arguments[i]);
    return NULL;
}

void call_on_threads(Function *functions, void **arguments, size_t count, size_t threads)
{
    pthread_t *made = malloc(threads * sizeof *made);
    Part *parts = malloc(threads * sizeof *parts);
    for (size_t i = 0; i < threads; i++) {
        parts[i] = (Part){functions, arguments, count, i, threads};
        pthread_create(&made[i], NULL, run, &parts[i]);
    }
    for (size_t i = 0; i < threads; i++)
        pthread_join(made[i], NULL);
    free(made);
    free(parts);
}

static Tensor *last;
void delete_at_the_end(Tensor *tensor) { last = tensor; }
__attribute__((destructor)) static void end(void)
{
    if (last)
        last->deleter(last);
}
