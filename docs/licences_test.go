package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// programs are what is distributed.
var programs = []string{"cinder-csi-driver", "cinder-csi-generator", "kubectl-cinder", "openstack-sim"}

// linked is a module that is linked into a program.
type linked struct {
	version, dir string
	programs     []string
	files        []string // of its packages that are linked
}

func linkedModules(t *testing.T) map[string]*linked {
	t.Helper()
	modules := map[string]*linked{}
	for _, program := range programs {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,GoFiles,Module", "../cmd/"+program).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		decoder := json.NewDecoder(bytes.NewReader(out))
		for {
			var p struct {
				Dir     string
				GoFiles []string
				Module  *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil || p.Module.Main { // the standard library, and ourselves
				continue
			}
			m := modules[p.Module.Path]
			if m == nil {
				m = &linked{version: p.Module.Version, dir: p.Module.Dir}
				modules[p.Module.Path] = m
			}
			if !slices.Contains(m.programs, program) {
				m.programs = append(m.programs, program)
			}
			for _, file := range p.GoFiles {
				m.files = append(m.files, filepath.Join(p.Dir, file))
			}
		}
	}
	return modules
}

// licences are the permitted licences, each with phrases that only its text has.
var licences = map[string][]string{
	"Apache-2.0":   {"Apache License", "Version 2.0, January 2004"},
	"MIT":          {"Permission is hereby granted, free of charge, to any person obtaining a copy"},
	"BSD-2-Clause": {"Redistribution and use in source and binary forms", "Redistributions in binary form must reproduce"},
	"BSD-3-Clause": {"Redistribution and use in source and binary forms", "Neither the name of"},
	"ISC":          {"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
}

// copyleft are phrases of licences that set conditions on programs that link the module, and of licences that are not for software.
var copyleft = regexp.MustCompile(`(?i)GNU (LESSER |AFFERO |LIBRARY )?GENERAL PUBLIC|Mozilla Public License|Eclipse Public License|COMMON DEVELOPMENT AND DISTRIBUTION|Creative Commons|Business Source License|Server Side Public`)

// licenceFile matches the names of licence files. LICENSE.docs is for the documentation of a module, which is not linked
// (github.com/opencontainers/go-digest, README).
var (
	licenceFile     = regexp.MustCompile(`(?i)^(licen[sc]e|copying)`)
	licenceOfManual = regexp.MustCompile(`(?i)^licen[sc]e\.docs$`)
)

// byFile are modules with a licence for each file, with the licence that every linked file must state.
var byFile = map[string]string{"github.com/cyphar/filepath-securejoin": "BSD-3-Clause"}

// licenceOf returns the licences of a module. It fails if a licence is unknown or not permitted.
func licenceOf(path string, m *linked) (string, error) {
	if licence, is := byFile[path]; is {
		for _, file := range m.files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			if stated := regexp.MustCompile(`SPDX-License-Identifier: (.*)`).FindSubmatch(content); stated == nil || string(stated[1]) != licence {
				return "", fmt.Errorf("%s does not state %s", file, licence)
			}
		}
		return licence, nil
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) || licenceOfManual.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(m.dir, entry.Name()))
		if err != nil {
			return "", err
		}
		its, err := licenceIn(string(content))
		if err != nil {
			return "", fmt.Errorf("%s: %w", entry.Name(), err)
		}
		maps.Copy(found, its)
	}
	if len(found) == 0 {
		return "", errors.New("it has no licence")
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", "), nil
}

func licenceIn(text string) (map[string]bool, error) {
	text = strings.Join(strings.Fields(text), " ")
	if phrase := copyleft.FindString(text); phrase != "" {
		return nil, fmt.Errorf("it is under a licence that may not be linked: %s", phrase)
	}
	found := map[string]bool{}
	for name, phrases := range licences {
		if !slices.ContainsFunc(phrases, func(p string) bool { return !strings.Contains(text, p) }) {
			found[name] = true
		}
	}
	if found["BSD-3-Clause"] {
		delete(found, "BSD-2-Clause")
	}
	if len(found) == 0 {
		return nil, errors.New("the licence is none of those known")
	}
	return found, nil
}

func TestEveryLinkedModuleHasALicenceThatMayBeLinked(t *testing.T) {
	testenv.NotShort(t)
	modules := linkedModules(t)
	var b strings.Builder
	b.WriteString("# Licences\n\nThe modules that are linked into the four programs, each with the licence that its files state. A test compares this page with the code. It refuses\n" +
		"a module without a known licence, and a licence with conditions on programs that link the module. `make update` writes the page.\n\n" +
		"| module | version | licence | linked into |\n| --- | --- | --- | --- |\n")
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		licence, err := licenceOf(path, m)
		if err != nil {
			t.Errorf("%s %s: %v", path, m.version, err)
		}
		in := "all"
		if len(m.programs) < len(programs) {
			in = "`" + strings.Join(m.programs, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", path, m.version, licence, in)
	}
	const page = "../THIRD_PARTY.md"
	if *update {
		testfile.Write(t, page, b.String(), 0o644)
	}
	got := testfile.Read(t, page)
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s is not what is linked; make update writes it (-want +got):\n%s", page, diff)
	}
}

func TestALicenceThatIsUnknownOrCopyleftIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"GNU GENERAL PUBLIC LICENSE Version 3": "may not be linked",
		"Mozilla Public License Version 2.0":   "may not be linked",
		"MIT License\nPermission is hereby granted,\nfree of charge, to any person\nobtaining a copy of": "",
		"All rights reserved.": "none of those known",
		"":                     "none of those known",
	} {
		_, err := licenceIn(text)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
