static int answer = 42;

void *instar_plugin_plans(void) { return &answer; }
