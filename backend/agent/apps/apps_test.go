package apps

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func TestAppsListenToTheLinkAlone(t *testing.T) {
	ports := map[int]string{}
	for _, p := range programs {
		for _, root := range []bool{true, false} {
			args := p.args(setting{port: p.port, root: root, dir: p.dir})
			text := strings.Join(args, " ")
			if !strings.Contains(text, "127.0.0.1") || strings.Contains(text, "0.0.0.0") ||
				!strings.Contains(text, fmt.Sprint(p.port)) {
				t.Errorf("%s: %v", p.id, args)
			}
			if (p.id == "jupyterlab" || p.id == "notebook") && slices.Contains(args, "--allow-root") != root {
				t.Errorf("%s as root %t: %v", p.id, root, args)
			}
			if p.dir != "" && !strings.Contains(text, "="+p.dir) {
				t.Errorf("%s does not show %s: %v", p.id, p.dir, args)
			}
			for _, lax := range []string{"allow_origin", "allow_remote", "disable_check_xsrf", "bind_all"} {
				if strings.Contains(text, lax) {
					t.Errorf("%s lets other pages in: %s", p.id, text)
				}
			}
		}
		args := p.args(setting{port: p.port, socket: "/tmp/app", dir: p.dir})
		onSocket := slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, "=/tmp/app") }) &&
			!strings.Contains(strings.Join(args, " "), "127.0.0.1")
		if onSocket != p.sockets {
			t.Errorf("%s on a socket: %v", p.id, args)
		}
		if !session.ReservedPort(p.port) || ports[p.port] != "" {
			t.Errorf("%s uses port %d, which a person or %s may take", p.id, p.port, ports[p.port])
		}
		ports[p.port] = p.id
		if own := session.KeeperPort(p.port); p.keeps && (!session.ReservedPort(own) || ports[own] != "") {
			t.Errorf("what keeps the output of %s uses port %d", p.id, own)
		}
	}
}

func TestAppsThatAnImageDeclares(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"none": {nil, ""},
		"its own": {map[string]string{
			labelApps: `[{"id":"streamlit","title":"Streamlit","command":["streamlit","run","app.py"],"port":8501,` +
				`"ready":"/healthz"},{"id":"api","port":8080}]`},
			"streamlit Streamlit 8501 [streamlit run app.py], api api 8080 []"},
		"what Backend.AI's have": {map[string]string{
			labelServices: "jupyter:http:8888, vnc_web:http:6080,db:tcp:[5432,5433],ttyd:pty:7000"},
			"jupyter jupyter 8888 [], vnc-web vnc_web 6080 [], db db 5432 []"},
		"the first of two on a port": {
			map[string]string{labelApps: `[{"id":"a","port":8080},{"id":"b","port":8080},{"id":"a","port":8081}]`},
			"a a 8080 []"},
		"no id, port or name that could be used": {map[string]string{
			labelApps: `[{"id":"A b","port":8080},{"id":"port-1","port":8081},{"id":"notebook","port":8082},` +
				`{"id":"x","port":80},{"id":"y","port":7431},{"id":"z","port":99999}]`,
			labelServices: "notebook:http:8888,q:http:99999999999999999999",
		}, ""},
		"a title, path or length that leads elsewhere": {map[string]string{
			labelApps: `[{"id":"a","title":"\u001b[2Jx","port":8080},{"id":"b","title":"\u202egpj","port":8081},` +
				`{"id":"c","path":"/x\r\nSet-Cookie: y","port":8082},` +
				`{"id":"d","ready":"/ HTTP/1.1\r\nX: y","port":8083},{"id":"e","path":"\\\\far.example","port":8084},` +
				`{"id":"f","path":"/` + strings.Repeat("x", 600) + `","port":8085}]`,
		}, ""},
		"more than fits": {map[string]string{labelApps: `[{"id":"a","port":8080}]`, labelServices: strings.Repeat("x",
			1<<20)}, ""},
		"no JSON": {map[string]string{labelApps: "streamlit"}, ""},
	} {
		var got []string
		for _, p := range declaredBy(c.labels) {
			command := []string{}
			if p.command != "" {
				command = append([]string{p.command}, p.args(setting{})...)
			}
			got = append(got, fmt.Sprint(p.id, " ", p.title, " ", p.port, " ", command))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestAppThatFailedSaysWhy(t *testing.T) {
	cause := &session.Cause{Code: "app_start_exited", Message: "It ended.", Hint: "Read its output."}
	for state, want := range map[link.ServiceState]session.AppState{
		link.ServiceStarting: session.AppStarting, link.ServiceReady: session.AppReady,
		link.ServiceExited: session.AppFailed, link.ServiceFailed: session.AppFailed,
	} {
		got := withService(session.App{Port: 1}, link.Service{Port: 2, State: state, Error: cause})
		if got.State != want || got.Port != 2 || got.Error != cause {
			t.Errorf("%s: %+v", state, got)
		}
	}
}
