package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// many registers so many evacuators.
func many(n int) map[string]string {
	annotations := map[string]string{}
	for i := range n {
		annotations[fmt.Sprintf("%se%d.example.com", registers, i)] = fmt.Sprint(i)
	}
	return annotations
}

func badPriority(class, priority string) string {
	return fmt.Sprintf(`annotation %s%s is ignored: priority %q must be an integer from 0 to 100000, as in "10000/controller"`, registers, class, priority)
}

func oddController(class, value string) string {
	return fmt.Sprintf(`annotation %s%s says %q: role "controller" and priority 10000 go together, as in "10000/controller"`, registers, class, value)
}

// Annotations of a pod and the warnings that its creator gets.
var registrations = map[string]struct {
	annotations map[string]string
	want        []string
}{
	"none":                          {map[string]string{"example.com/note": "first"}, nil},
	"a priority":                    {map[string]string{registers + "a.example.com": "20000"}, nil},
	"a priority and a role":         {map[string]string{registers + "a.example.com": "20000/mover"}, nil},
	"the lowest and the highest":    {map[string]string{registers + "a.example.com": "0", registers + "b.example.com": "100000/"}, nil},
	"leading zeros":                 {map[string]string{registers + "a.example.com": "00000000020000"}, nil},
	"the controller":                {map[string]string{registers + v1alpha1.DeploymentEvacuatorClass: "10000/controller"}, nil},
	"a role with a slash":           {map[string]string{registers + "a.example.com": "9/a/controller"}, nil},
	"a role of 63 characters":       {map[string]string{registers + "a.example.com": "9/" + strings.Repeat("ö", 63)}, nil},
	"100 evacuators":                {many(100), nil},
	"a priority that is no number":  {map[string]string{registers + "a.example.com": "high"}, []string{badPriority("a.example.com", "high")}},
	"no priority":                   {map[string]string{registers + "a.example.com": ""}, []string{badPriority("a.example.com", "")}},
	"only a role":                   {map[string]string{registers + "a.example.com": "/controller"}, []string{badPriority("a.example.com", "")}},
	"a negative priority":           {map[string]string{registers + "a.example.com": "-1"}, []string{badPriority("a.example.com", "-1")}},
	"a signed priority":             {map[string]string{registers + "a.example.com": "+1"}, []string{badPriority("a.example.com", "+1")}},
	"a fraction":                    {map[string]string{registers + "a.example.com": "1.5"}, []string{badPriority("a.example.com", "1.5")}},
	"a space":                       {map[string]string{registers + "a.example.com": " 1"}, []string{badPriority("a.example.com", " 1")}},
	"a line break":                  {map[string]string{registers + "a.example.com": "1\n/mover"}, []string{badPriority("a.example.com", "1\n")}},
	"a priority above 100,000":      {map[string]string{registers + "a.example.com": "100001"}, []string{badPriority("a.example.com", "100001")}},
	"a priority beyond all numbers": {map[string]string{registers + "a.example.com": strings.Repeat("9", 40)}, []string{badPriority("a.example.com", strings.Repeat("9", 40))}},
	"a value too long to repeat":    {map[string]string{registers + "a.example.com": strings.Repeat("x", 200_000)}, []string{`annotations are ignored whose priority is not an integer from 0 to 100000, as in "10000/controller"`}},
	"10000 without the role":        {map[string]string{registers + "a.example.com": "10000"}, []string{oddController("a.example.com", "10000")}},
	"10000 with another role":       {map[string]string{registers + "a.example.com": "10000/mover"}, []string{oddController("a.example.com", "10000/mover")}},
	"controller with 9":             {map[string]string{registers + "a.example.com": "9/controller"}, []string{oddController("a.example.com", "9/controller")}},
	"a class that is no subdomain": {
		map[string]string{registers + "Mover_1": "9"},
		[]string{"annotation " + registers + `Mover_1 is ignored: evacuator class "Mover_1" must be a DNS subdomain such as drainer.example.com: lower case letters, digits, - and ., beginning and ending with a letter or digit`},
	},
	"a role of 64 characters": {
		map[string]string{registers + "a.example.com": "9/" + strings.Repeat("ö", 64)},
		[]string{"annotation " + registers + "a.example.com is ignored: role must have at most 63 characters, has 64"},
	},
	"101 evacuators": {
		many(101),
		[]string{"a pod may have at most 100 evacuators, this one has 101; those of the lowest priority are ignored"},
	},
	"two faults": {
		map[string]string{registers + "a.example.com": "high", registers + "b.example.com": "9/controller"},
		[]string{badPriority("a.example.com", "high"), oddController("b.example.com", "9/controller")},
	},
}

// Whoever creates a pod is told what is wrong with its evacuators and gets the
// pod all the same.
func TestCreatorOfAPodIsWarned(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	for name, test := range registrations {
		t.Run(name, func(t *testing.T) {
			create(t, c, annotated("warned-"+strings.Trim(notInName.ReplaceAllString(name, "-"), "-"), test.annotations))
			got := heard.take()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			_, problems := podclass.Evacuators(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}})
			if told := strings.Contains(strings.Join(got, "\n"), "ignored"); told != (len(problems) > 0) {
				t.Errorf("told that something is ignored: %v, while a drain finds %v", told, problems)
			}
		})
	}
}
