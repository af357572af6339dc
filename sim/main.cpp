#include "sim/core/config.h"
int main(){}
