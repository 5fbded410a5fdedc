// Package cloudconf reads and writes cloud.conf, an INI dialect of the OpenStack cloud providers. The dialect is gcfg's, which is
// close to git's.
//
// A section is [Section "subsection"]. Section and key names ignore case. Double quotes allow \\ \" \n \t. A comment runs from #
// or ; to the end of the line. A backslash at the end of a line joins it with the next one. A key without a value means true.
//
// The package knows the syntax only; the caller knows the sections and keys. Errors name lines and keys, never values: the file
// holds credentials.
package cloudconf

import (
	"fmt"
	"strings"
)

// File holds the settings of one or more files. The zero File is empty and ready to use.
type File struct {
	Sections []*Section // in order of first appearance
}

// Section is one [Name] or [Name "Subsection"].
type Section struct {
	Name       string // as first written; comparisons ignore case
	Subsection string // comparisons are exact; "" means none
	Line       int    // of its first header; 0 if no file has it
	Keys       []Key  // in order of first appearance; one per name
}

// Key is one setting.
type Key struct {
	Name  string // as last written; comparisons ignore case
	Value string // empty for a bare key
	Bare  bool   // written without "=", which means true
	Line  int    // of its last value; 0 if no file has it
}

// Section returns a section, or nil if the file has none. A nil *Section has no keys.
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

// Set sets the value of a key. It adds the section if it is missing.
func (f *File) Set(section, subsection, key, value string) {
	f.section(section, subsection, 0).put(Key{Name: key, Value: value})
}

// Merge sets every key of later in f.
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

// Key returns a key, or nil if the section has none.
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

// Get returns the value of a key, and whether the section has the key.
func (s *Section) Get(name string) (string, bool) {
	k := s.Key(name)
	if k == nil {
		return "", false
	}
	return k.Value, true
}

// Bool returns the value of a key as gcfg reads booleans. True is true, yes, on or 1; false is false, no, off or 0; case does not
// matter. A key without a value is true, a missing key false. Any other value is an error.
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
