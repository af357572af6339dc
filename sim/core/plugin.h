// Plugins: shared libraries with components outside of netsim, which the program loads with --plugin.
//
// A plugin is made of component files like those of netsim, compiled with the installed headers and linked
// with the library (find_package(netsim) or pkg-config). One of its files has, outside of all namespaces,
//
//   #include "sim/core/plugin.h"
//   NETSIM_PLUGIN
//
// Its components are in the catalogue beside netsim's own. docs/how-to/extend.md shows whole plugins.
#pragma once

#include "sim/core/interface_version.h"

// Marks the file of a plugin. The version of the headers that it was built with follows the mark.
#define NETSIM_PLUGIN_MARK "netsim plugin, interface "

// Makes the shared library a plugin. The version can be read without running any of its code. No symbol is
// exported, so several plugins can be loaded at once.
#define NETSIM_PLUGIN                                                         \
  [[gnu::used, gnu::retain]] static constexpr char kNetsimPluginInterface[] = \
      NETSIM_PLUGIN_MARK NETSIM_INTERFACE_VERSION "\n";
