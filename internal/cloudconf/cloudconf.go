// Package cloudconf reads and writes cloud.conf, the INI dialect that the OpenStack cloud provider family uses (gcfg's, itself
// close to git's): [Section "subsection"], case-insensitive section and key names, double quotes with \\ \" \n \t, comments from
// # or ; to the end of the line, a backslash that joins lines, and keys without a value that mean true.
//
// It knows the syntax only; which sections and keys there are is told by the caller. Errors name lines and keys, never values:
// the file holds credentials.
package cloudconf

import (
	"fmt"
	"strings"
)

// File is the settings of one or more files. The zero File is empty and ready to use.
type File struct {
	Sections []*Section // in order of first appearance
}

// Section is one [Name] or [Name "Subsection"].
type Section struct {
	Name       string // as first written; compared without regard to case
	Subsection string // compared exactly; empty where there is none
	Line       int    // of its first header; 0 when it was not read from a file
	Keys       []Key  // in order of first appearance; one per name
}

// Key is one setting.
type Key struct {
	Name  string // as written last; compared without regard to case
	Value string // empty for a bare key
	Bare  bool   // written without "=", which means true
	Line  int    // where it was set last; 0 when it was not read from a file
}

// Section finds a section, nil where there is none; a nil *Section has no keys.
func (f *File) Section(name, subsection string) *Section {
	if f == nil {
		return nil
	}
	for _, s := range f.Sections {
		if strings.EqualFold(s.Name, name) && s.Subsection == subsection {
			return s
		}
	}
	return nil
}

// Subsections lists the subsections of all sections called name, in order; the plain [name] counts as "".
func (f *File) Subsections(name string) []string {
	var subs []string
	for _, s := range f.Sections {
		if strings.EqualFold(s.Name, name) {
			subs = append(subs, s.Subsection)
		}
	}
	return subs
}

// Set gives a key a value, making the section where it is missing.
func (f *File) Set(section, subsection, key, value string) {
	f.section(section, subsection, 0).put(Key{Name: key, Value: value})
}

// Merge puts later's keys over those of f, key by key.
func (f *File) Merge(later *File) {
	for _, s := range later.Sections {
		mine := f.section(s.Name, s.Subsection, s.Line)
		for _, k := range s.Keys {
			mine.put(k)
		}
	}
}

func (f *File) section(name, subsection string, line int) *Section {
	s := f.Section(name, subsection)
	if s == nil {
		s = &Section{Name: name, Subsection: subsection, Line: line}
		f.Sections = append(f.Sections, s)
	}
	return s
}

// Key finds a key, nil where there is none.
func (s *Section) Key(name string) *Key {
	if s == nil {
		return nil
	}
	for i := range s.Keys {
		if strings.EqualFold(s.Keys[i].Name, name) {
			return &s.Keys[i]
		}
	}
	return nil
}

// Get is a key's value and whether the key is there.
func (s *Section) Get(name string) (string, bool) {
	k := s.Key(name)
	if k == nil {
		return "", false
	}
	return k.Value, true
}

// Bool is a key's value as gcfg reads booleans: true, yes, on, 1; false, no, off, 0; in any case; a bare key is true, a missing
// key false. Anything else is an error.
func (s *Section) Bool(name string) (bool, error) {
	k := s.Key(name)
	switch {
	case k == nil:
		return false, nil
	case k.Bare:
		return true, nil
	}
	switch strings.ToLower(k.Value) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("line %d: [%s] %s: not a boolean; use true or false", k.Line, s.Name, k.Name)
}

func (s *Section) put(k Key) {
	if old := s.Key(k.Name); old != nil {
		*old = k
		return
	}
	s.Keys = append(s.Keys, k)
}
