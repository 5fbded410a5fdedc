package disk

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
)

func TestAnINQUIRYIsRepeatedUntilTheDiskSaysWhichLUNItIs(t *testing.T) {
	fixed := func(key, code byte) []byte { return []byte{0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, 0} }
	good := reply{length: len(page80(serial))}
	for name, c := range map[string]struct {
		replies    []reply
		err        error
		sent       int
		good, gone bool
	}{
		"good":                      {replies: []reply{good}, sent: 1, good: true},
		"busy once":                 {replies: []reply{{status: busy}, good}, sent: 2, good: true},
		"busy twice":                {replies: []reply{{status: busy}, {status: busy}, good}, sent: 3, good: true},
		"always busy":               {replies: []reply{{status: busy}, {status: busy}, {status: busy}, good}, sent: 3},
		"the queue is full":         {replies: []reply{{status: taskSetFull}, good}, sent: 2, good: true},
		"the bus was reset":         {replies: []reply{{host: 8}, good}, sent: 2, good: true},
		"the driver timed out":      {replies: []reply{{driver: 6}, good}, sent: 2, good: true},
		"sense data of a success":   {replies: []reply{{driver: 8, length: good.length}}, sent: 1, good: true},
		"unit attention":            {replies: []reply{{status: checkCondition, sense: fixed(6, 0x29)}, good}, sent: 2, good: true},
		"unit attention, described": {replies: []reply{{status: checkCondition, sense: []byte{0x72, 6, 0x29, 0}}, good}, sent: 2, good: true},
		"not ready":                 {replies: []reply{{status: checkCondition, sense: fixed(2, 4)}}, sent: 1},
		"no sense data":             {replies: []reply{{status: checkCondition}}, sent: 1},
		"no such LUN":               {replies: []reply{{status: checkCondition, driver: 8, sense: fixed(5, 0x25)}}, sent: 1, gone: true},
		"no such LUN, described":    {replies: []reply{{status: checkCondition, sense: []byte{0x72, 5, 0x25, 0}}}, sent: 1, gone: true},
		"no such LUN in QEMU":       {replies: []reply{{status: checkCondition, sense: fixed(5, 0x24)}}, sent: 1, gone: true},
		"the kernel refuses":        {replies: []reply{{}}, err: syscall.ENXIO, sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				got, err := inquire(0x80, len(page80(serial)), func(_, answer []byte) (reply, error) {
					r := c.replies[sent]
					sent++
					copy(answer, page80(serial))
					return r, c.err
				})
				if sent != c.sent || (err == nil) != c.good || errors.Is(err, fs.ErrNotExist) != c.gone || c.good && string(got) != page80(serial) {
					t.Errorf("want %d commands, good %t, gone %t, got %d, %q, %v", c.sent, c.good, c.gone, sent, got, err)
				}
			})
		})
	}
}

func TestAnAnswerToAnINQUIRYIsCutAsTheKernelCutsItsCopy(t *testing.T) {
	t.Parallel()
	page := page80(serial)
	for name, c := range map[string]struct {
		answer, want string
		refused      bool
		gone         bool // and the disk says that it is not that LUN
	}{
		"padded":            {answer: page + "\x00\x00\x00", want: page},
		"exact":             {answer: page, want: page},
		"cut by the disk":   {answer: page[:10], want: page[:10]},
		"of no LUN":         {answer: "\x7f" + page[1:], refused: true, gone: true},
		"of another page":   {answer: "\x00\x83" + page[2:], refused: true, gone: true},
		"shorter than that": {answer: page[:3], refused: true},
		"empty":             {refused: true},
	} {
		got, err := cutPage([]byte(c.answer), 0x80)
		if (err != nil) != c.refused || errors.Is(err, fs.ErrNotExist) != c.gone || string(got) != c.want {
			t.Errorf("%s: want %q, refused %t, gone %t, got %q, %v", name, c.want, c.refused, c.gone, got, err)
		}
	}
}
