// What makes a shared library a plugin: components outside of netsim, which the program loads with --plugin.
//
// A plugin is made of component files like those of netsim, compiled with the installed headers and linked
// with the library (find_package(netsim) or pkg-config). One of its files has, outside of all namespaces,
//
//   #include "sim/core/plugin.h"
//   NETSIM_PLUGIN
//
// Its components are in the catalogue beside netsim's own. docs/extending.md shows whole plugins.
#pragma once

#include "sim/core/interface_version.h"

// Where a plugin's file says which headers it was made with.
#define NETSIM_PLUGIN_MARK "netsim plugin, interface "

// Makes the shared library a plugin. The text can be read without running anything of it; no symbol is
// exported, so that several plugins do not meet.
#define NETSIM_PLUGIN                                                         \
  [[gnu::used, gnu::retain]] static constexpr char kNetsimPluginInterface[] = \
      NETSIM_PLUGIN_MARK NETSIM_INTERFACE_VERSION "\n";
