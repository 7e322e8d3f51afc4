package calendar_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/calendar"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestParseWindowReadsAndDescribeWrites(t *testing.T) {
	t.Parallel()
	type days = []v1alpha1.Weekday
	for text, test := range map[string]struct {
		want      v1alpha1.MaintenanceWindow
		described string
	}{
		"mon-fri 22:00-04:00 Europe/Berlin": {
			v1alpha1.MaintenanceWindow{Days: days{"mon", "tue", "wed", "thu", "fri"}, From: "22:00", To: "04:00", TimeZone: "Europe/Berlin"},
			"mon-fri 22:00-04:00 Europe/Berlin",
		},
		" MON - Friday, sunday  22:00 - 4:00  europe/berlin ": {
			v1alpha1.MaintenanceWindow{Days: days{"mon", "tue", "wed", "thu", "fri", "sun"}, From: "22:00", To: "04:00", TimeZone: "Europe/Berlin"},
			"mon-fri,sun 22:00-04:00 Europe/Berlin",
		},
		"sat,sun,sat 08:00-18:00 utc": {v1alpha1.MaintenanceWindow{Days: days{"sat", "sun"}, From: "08:00", To: "18:00", TimeZone: "UTC"}, "sat,sun 08:00-18:00 UTC"},
		"fri-mon 00:00-24:00 america/new_york": {
			v1alpha1.MaintenanceWindow{Days: days{"mon", "fri", "sat", "sun"}, From: "00:00", To: "00:00", TimeZone: "America/New_York"},
			"mon,fri-sun 00:00-00:00 America/New_York",
		},
		"daily 1:30-2:30 Etc/GMT+1": {v1alpha1.MaintenanceWindow{From: "01:30", To: "02:30", TimeZone: "Etc/GMT+1"}, "daily 01:30-02:30 Etc/GMT+1"},
		"22:00-04:00":               {v1alpha1.MaintenanceWindow{From: "22:00", To: "04:00"}, "daily 22:00-04:00 UTC"},
		"mon-sun 22:00-04:00 UTC":   {v1alpha1.MaintenanceWindow{Days: days{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}, From: "22:00", To: "04:00", TimeZone: "UTC"}, "daily 22:00-04:00 UTC"},
		"tue 22:00-04:00 America/Port-au-Prince": {
			v1alpha1.MaintenanceWindow{Days: days{"tue"}, From: "22:00", To: "04:00", TimeZone: "America/Port-au-Prince"},
			"tue 22:00-04:00 America/Port-au-Prince",
		},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := calendar.ParseWindow(text)
			if err != nil {
				t.Fatal(err)
			}
			difference.None(t, "window", test.want, got)
			described := calendar.Describe(got)
			difference.None(t, "description", test.described, described)
			again, err := calendar.ParseWindow(described)
			if err != nil || calendar.Describe(again) != described {
				t.Errorf("%q is read as %+v, %v", described, again, err)
			}
			if _, err := calendar.Read([]v1alpha1.MaintenanceWindow{got, again}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseWindowNamesPartAtFault(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "mon-fri", "mon 22:00", "mon 22:00-04:00 Europe/Berlin UTC", "mon 22:00/04:00", "mox 22:00-04:00", "mon- 22:00-04:00", "mon,,tue 22:00-04:00", "mon-tue-wed 22:00-04:00",
		"montag 22:00-04:00", "mon 25:00-04:00", "mon 22:00-4", "mon 22:60-04:00", "mon 24:00-04:00:00", "mon 22:00-04:00 Local", "mon 22:00-04:00 Europe/Atlantis",
	} {
		w, err := calendar.ParseWindow(text)
		if err == nil {
			t.Errorf("%q is read as %+v", text, w)
			continue
		}
		golden.Message(t, err.Error())
	}
}

func FuzzParsedWindowIsValid(f *testing.F) {
	for _, text := range []string{"mon-fri 22:00-04:00 Europe/Berlin", "daily 1:00-24:00", "SAT,sun 0:0-::", "0:00-0:00 ../x", "24:00-24:00 utc"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := calendar.ParseWindow(text)
		if err != nil {
			return
		}
		if _, err := calendar.Read([]v1alpha1.MaintenanceWindow{w}, nil); err != nil {
			t.Errorf("%q is read as %+v: %v", text, w, err)
		}
	})
}
