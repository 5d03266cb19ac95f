package main

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
)

// bom is the part of CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/) that a list of modules needs. It
// has no serial number and no time, so that the same binary gives the same list.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	URL     string `json:"purl"`
}

// writeModules lists the modules that Go has linked into any of the programs, and Go itself.
func writeModules(path string, programs []program) error {
	list := bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	list.Metadata.Component = ofModule("application", &programs[0].build.Main)
	add := func(module *debug.Module) {
		if c := ofModule("library", module); !slices.Contains(list.Components, c) {
			list.Components = append(list.Components, c)
		}
	}
	for _, p := range programs {
		for _, module := range p.build.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			if module.Version != "" { // lockcheck itself, in workers' programs that are separate modules, has no version
				add(module)
			}
		}
		add(&debug.Module{Path: "std", Version: p.build.GoVersion})
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func ofModule(kind string, module *debug.Module) component {
	return component{Type: kind, Name: module.Path, Version: module.Version, URL: "pkg:golang/" + module.Path + "@" + module.Version}
}
