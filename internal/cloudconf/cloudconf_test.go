package cloudconf

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// settings is a file without lines, for comparison.
func settings(f *File) map[string]string {
	all := map[string]string{}
	for _, s := range f.Sections {
		for _, k := range s.Keys {
			value := k.Value
			if k.Bare {
				value = "(bare)"
			}
			all[strings.ToLower(s.Name)+"|"+s.Subsection+"|"+strings.ToLower(k.Name)] = value
		}
	}
	return all
}

func TestParseReadsTheDialect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		src  string
		want map[string]string
	}{
		"plain":                   {"[Global]\nauth-url = http://k/v3\n", map[string]string{"global||auth-url": "http://k/v3"}},
		"no end of line":          {"[Global]\nregion=R", map[string]string{"global||region": "R"}},
		"windows":                 {"\ufeff[Global]\r\nregion = R\r\nuse-clouds\r\n", map[string]string{"global||region": "R", "global||use-clouds": "(bare)"}},
		"case":                    {"[GLOBAL]\nRegion=a\n[global]\nREGION=b", map[string]string{"global||region": "b"}},
		"later wins":              {"[Global]\nregion=a\nregion=b\n", map[string]string{"global||region": "b"}},
		"comments":                {"# a\n; b\n[Global] ; c\n\tregion = R # d\nusername=u;e\n", map[string]string{"global||region": "R", "global||username": "u"}},
		"subsections":             {"[Global \"a\"]\nregion=1\n[Global \"A\"]\nregion=2\n[Global \"q\\\"\\\\\"]\nregion=3", map[string]string{"global|a|region": "1", "global|A|region": "2", "global|q\"\\|region": "3"}},
		"quoted secret":           {`[Global]` + "\n" + `password = "a#b;c\"d\\e"`, map[string]string{"global||password": `a#b;c"d\e`}},
		"escapes":                 {"[Global]\npassword = \"a\\nb\\tc\"", map[string]string{"global||password": "a\nb\tc"}},
		"quoted stretches":        {`[Global]` + "\n" + `password = a" # "b  " "  `, map[string]string{"global||password": `a # b   `}},
		"quote escaped unquoted":  {`[Global]` + "\n" + `password = a\"b`, map[string]string{"global||password": `a"b`}},
		"blanks inside are kept":  {"[Global]\npassword =  a  b\t \n", map[string]string{"global||password": "a  b"}},
		"line joined":             {"[Global]\npassword = a\\\n b\n", map[string]string{"global||password": "a b"}},
		"empty and bare":          {"[Global]\nregion =\nuse-clouds ; yes\n", map[string]string{"global||region": "", "global||use-clouds": "(bare)"}},
		"equals in a value":       {"[Global]\npassword = a=b==\n", map[string]string{"global||password": "a=b=="}},
		"empty file":              {"", map[string]string{}},
		"section without setting": {"[Networking]\n", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Parse([]byte(tc.src))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, settings(f)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseNamesTheLineAndNeverTheValue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		src  string
		line int
	}{
		"key before a section":       {"\nregion = s3cret", 2},
		"no bracket":                 {"[Global\nregion=s3cret", 1},
		"rest after the bracket":     {"[Global] region = s3cret", 1},
		"empty subsection":           {"[Global \"\"]\n", 1},
		"open subsection":            {"[Global \"a]\n", 1},
		"bad subsection escape":      {"[Global \"a\\n\"]\n", 1},
		"open quote":                 {"[Global]\npassword = \"s3cret\nregion = R\n", 2},
		"unknown escape":             {"[Global]\npassword = \"s3cret\\x\"\n", 2},
		"backslash outside quotes":   {"[Global]\n\npassword = s3cret\\x\n", 3},
		"no equals":                  {"[Global]\npassword s3cret\n", 2},
		"a character out of place":   {"[Global]\n= s3cret\n", 2},
		"not UTF-8":                  {"[Global]\npassword = s3cret\xff\n", 2},
		"NUL":                        {"[Global]\npassword = s3cret\x00\n", 2},
		"a number for a section":     {"[1]\n", 1},
		"backslash at the very end":  {"[Global]\npassword = s3cret\\", 2},
		"escape at the very end":     {"[Global]\npassword = \"s3cret\\", 2},
		"open section and very end":  {"[Global]\n[", 2},
		"keys without end":           {"[s]\n" + strings.Repeat("s3cret\n", mostLines), mostLines + 1},
		"sections without end":       {strings.Repeat("[s3cret]\n", mostLines+1), mostLines + 1},
		"a value and an open bracke": {"[Global]\n[Other s3cret", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(tc.src))
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("Parse = %v, want a SyntaxError", err)
			}
			if syntax.Line != tc.line {
				t.Errorf("line %d, want %d: %v", syntax.Line, tc.line, err)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

func TestKeysRememberTheirLines(t *testing.T) {
	t.Parallel()
	f, err := Parse([]byte("# head\n[Global]\nregion=a\npassword=\"x\\ny\"\nusername=a\\\n b\nregion=b\n"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, k := range f.Section("global", "").Keys {
		lines[k.Name] = k.Line
	}
	if diff := cmp.Diff(map[string]int{"region": 7, "password": 4, "username": 5}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestBool(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"= true": true, "=yes": true, "=On": true, "=1": true, "": true, "= FALSE": false, "=no": false, "=off": false, "=0": false,
	} {
		f, err := Parse([]byte("[Global]\nuse-clouds " + value + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Section("Global", "").Bool("use-clouds"); err != nil || got != want {
			t.Errorf("use-clouds %s: %v, %v; want %v", value, got, err, want)
		}
	}
	f, _ := Parse([]byte("[Global]\nuse-clouds = maybe\nother =\n"))
	for _, key := range []string{"use-clouds", "other"} {
		if _, err := f.Section("Global", "").Bool(key); err == nil {
			t.Errorf("%s: no error for something that is not a boolean", key)
		}
	}
	if got, err := f.Section("Missing", "").Bool("use-clouds"); got || err != nil {
		t.Errorf("a missing key: %v, %v; want false", got, err)
	}
}

func TestMergeOverridesKeyByKey(t *testing.T) {
	t.Parallel()
	f, _ := Parse([]byte("[Global]\nregion=a\nusername=u\n[Global \"x\"]\nregion=x\n"))
	later, _ := Parse([]byte("[BlockStorage]\nrescan-on-resize\n[GLOBAL]\nREGION=b\n"))
	f.Merge(later)
	want := map[string]string{
		"global||region": "b", "global||username": "u", "global|x|region": "x", "blockstorage||rescan-on-resize": "(bare)",
	}
	if diff := cmp.Diff(want, settings(f)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if got := f.Subsections("global"); !cmp.Equal(got, []string{"", "x"}) {
		t.Errorf("Subsections = %q", got)
	}
}

func TestUnknownNamesTheNearestKnown(t *testing.T) {
	t.Parallel()
	known := []Name{
		{"Global", "auth-url"}, {"Global", "username"}, {"Global", "user-domain-name"}, {"BlockStorage", "rescan-on-resize"}, {"Networking", "*"},
	}
	f, err := Parse([]byte("[Global]\nAuth-URL=x\nusrename=x\nauthurl=x\nbs-version=x\n[Global \"b\"]\nuser-domain=x\n[Blockstorge]\nx=y\n[Networking]\nany=x\n[Metrics]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range f.Unknown(known) {
		got = append(got, u.String())
	}
	want := []string{
		"line 3: unknown key usrename in section [Global]; did you mean username?",
		"line 4: unknown key authurl in section [Global]; did you mean auth-url?",
		"line 5: unknown key bs-version in section [Global]",
		"line 7: unknown key user-domain in section [Global]",
		"line 8: unknown section [Blockstorge]; did you mean BlockStorage?",
		"line 12: unknown section [Metrics]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
}

func TestBytesQuotesWhatNeedsIt(t *testing.T) {
	t.Parallel()
	var f File
	f.Set("Global", "", "auth-url", "https://k:5000/v3")
	f.Set("Global", "", "password", `p#;"\ `)
	f.Set("Global", "", "empty", "")
	f.Set("Global", `a"b\`, "region", " R")
	f.Sections[0].Keys = append(f.Sections[0].Keys, Key{Name: "use-clouds", Bare: true})
	want := `[Global]
auth-url = https://k:5000/v3
password = "p#;\"\\ "
empty =
use-clouds

[Global "a\"b\\"]
region = " R"
`
	if diff := cmp.Diff(want, string(f.Bytes())); diff != "" {
		t.Errorf("Bytes (-want +got):\n%s", diff)
	}
}

// FuzzRoundTrip: whatever Parse accepts, Bytes writes so that it reads the same.
func FuzzRoundTrip(f *testing.F) {
	f.Add("[Global]\npassword = \"a#b;c\\\"d\\\\e\\n\"\nuse-clouds\n[Global \"x\\\"\"]\nregion= R ; c\n")
	f.Add("[a]\nb = c\\\nd \\\" e\n")
	f.Add("\ufeff[a]\r\nb = \"  \"\r\n")
	f.Fuzz(func(t *testing.T, src string) {
		first, err := Parse([]byte(src))
		if err != nil {
			return
		}
		second, err := Parse(first.Bytes())
		if err != nil {
			t.Fatalf("what was written does not read: %v\n%s", err, first.Bytes())
		}
		if diff := cmp.Diff(settings(first), settings(second)); diff != "" {
			t.Fatalf("settings changed (-read +written):\n%s", diff)
		}
	})
}

// FuzzValue: every value can be written, but for the characters the dialect has no spelling for.
func FuzzValue(f *testing.F) {
	for _, v := range []string{`#`, `;`, `"`, `\`, ` a `, "a\nb", "\t", `\"`, "ä", "=", "[x]", ""} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.ToValidUTF8(strings.NewReplacer("\r", "", "\x00", "").Replace(value), "?")
		var conf File
		conf.Set("Global", "", "password", value)
		read, err := Parse(conf.Bytes())
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if got, ok := read.Section("Global", "").Get("password"); !ok || got != value {
			t.Fatalf("wrote %q, read %q", value, got)
		}
	})
}
