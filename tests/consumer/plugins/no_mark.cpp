// A shared library, but no plugin: it says nowhere which headers it was made with.
int answer() { return 42; }
