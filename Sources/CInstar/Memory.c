#include "CInstar.h"

#include <malloc.h>

void instar_limit_arenas(int count) { mallopt(M_ARENA_MAX, count); }

void instar_trim_memory(void) { malloc_trim(0); }
