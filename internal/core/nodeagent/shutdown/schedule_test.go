package shutdown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func TestTheFileOfAScheduledShutdown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"USEC=1772366400000000\nWARN_WALL=1\nMODE=reboot\n":       "2026-03-01T12:00:00Z reboot",
		"MODE=poweroff\nUSEC=1772366400000000":                    "2026-03-01T12:00:00Z power-off",
		"USEC=1772366400000000\nMODE=something-new\n":             "2026-03-01T12:00:00Z unknown",
		"USEC=1772366400000000\nMODE=dry-reboot\n":                "nothing",
		"USEC=1772366400000000\nWALL_MESSAGE=USEC=1\nMODE=halt\n": "2026-03-01T12:00:00Z halt",
		"":                         "it says no MODE",
		"USEC=1772366400000000\n":  "it says no MODE",
		"MODE=reboot\n":            `USEC is no time: strconv.ParseInt: parsing "": invalid syntax`,
		"USEC=soon\nMODE=reboot\n": `USEC is no time: strconv.ParseInt: parsing "soon": invalid syntax`,
		"USEC=0\nMODE=reboot\n":    "USEC=0 is no time at which a machine can shut down",
		"USEC=-1\nMODE=reboot\n":   "USEC=-1 is no time at which a machine can shut down",
		"USEC=9223372036854775807\nMODE=reboot\n": "USEC=9223372036854775807 is no time at which a machine can shut down",
	} {
		got := "nothing"
		switch schedule, err := ParseSchedule(text); {
		case err != nil:
			got = err.Error()
		case schedule != nil:
			got = schedule.At.Format(time.RFC3339) + " " + schedule.Type
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// Whatever is in the file, what is decided can be stored, and is read again as it was.
func FuzzTheFileOfAScheduledShutdown(f *testing.F) {
	for _, text := range []string{"USEC=1772366400000000\nMODE=reboot\n", "USEC=253370764799999999\nMODE=kexec", "MODE=dry-halt", "=\n=", "USEC=1\x00\nMODE=\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		schedule, err := ParseSchedule(text)
		if err != nil || schedule == nil {
			return
		}
		d := Decide(Snapshot{Now: noon, BootID: "b", Wish: v1alpha1.ShutdownModeDrain, Schedule: schedule})
		again, err := ParseEntry(d.Entry.Text())
		if err != nil || again == nil || !again.Deadline.Equal(schedule.At) || again.Type != schedule.Type {
			t.Errorf("%q is stored as %s, which is read as %+v (%v)", text, d.Entry.Text(), again, err)
		}
		if _, err := d.Status.DeadlineTime.MarshalJSON(); err != nil || d.Status.DeadlineTime.Year() > 9999 {
			t.Errorf("%q has a deadline that the API does not take: %v", text, err)
		}
	})
}

func TestMissingEntryOfThePlan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                 "<nil>",
		"{":                "unexpected end of JSON input",
		`{"phase":"None"}`: `it has phase "None"`,
		`{"phase":"` + strings.Repeat("x", 1<<20) + `"}`: "it has phase " + fmt.Sprintf("%q", strings.Repeat("x", 50)),
		`{"phase":"Preparing"}`:                          "it is about 0001-01-01 00:00:00 +0000 UTC to 0001-01-01 00:00:00 +0000 UTC",
	} {
		e, err := ParseEntry([]byte(text))
		if e != nil || fmt.Sprint(err) != want {
			t.Errorf("%.100q is %+v, %v; want %s", text, e, err, want)
		}
	}
}
