package launch

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"strconv"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// clusterOf lets the kernels of a session reach each other by ssh. The keys are
// made from the agent's secret, so that making a container again, after a crash
// too, gives the same.
func (r *Runner) clusterOf(s session.Session, k session.Kernel) *engine.Cluster {
	if s.Spec.Cluster < 2 {
		return nil
	}
	hosts := make([]string, len(s.Kernels))
	for i, kernel := range s.Kernels {
		hosts[i] = kernel.Hostname
	}
	attempt := strconv.Itoa(s.Attempt)
	return &engine.Cluster{
		Self: k.Hostname, Hosts: hosts,
		HostKey: r.sshKey("host", string(s.ID), attempt), UserKey: r.sshKey("user", string(s.ID), attempt),
	}
}

// sshKey makes a private key of Ed25519 in OpenSSH's format from the agent's
// secret and a purpose.
func (r *Runner) sshKey(purpose ...string) string {
	mac := hmac.New(sha256.New, r.config.Records.Secret())
	mac.Write([]byte(strings.Join(purpose, "\x00"))) // a hash never fails
	key := ed25519.NewKeyFromSeed(mac.Sum(nil))
	return string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: openSSH(key)}))
}

// openSSH writes a key as PROTOCOL.key of OpenSSH describes it, without a
// passphrase.
func openSSH(key ed25519.PrivateKey) []byte {
	const kind, block = "ssh-ed25519", 8
	text := func(to []byte, s []byte) []byte {
		return append(binary.BigEndian.AppendUint32(to, uint32(len(s))), s...)
	}
	point := []byte(key.Public().(ed25519.PublicKey))
	public := text(text(nil, []byte(kind)), point)
	check := binary.BigEndian.Uint32(point)
	private := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, check), check)
	private = text(text(text(private, []byte(kind)), point), key)
	private = text(private, []byte("slipway"))
	for i := byte(1); len(private)%block != 0; i++ {
		private = append(private, i)
	}
	out := []byte("openssh-key-v1\x00")
	out = text(text(text(out, []byte("none")), []byte("none")), nil)
	out = binary.BigEndian.AppendUint32(out, 1)
	return text(text(out, public), private)
}

// clusterEnv tells a kernel's processes of the others.
func clusterEnv(s session.Session, number int) []session.EnvVar {
	count := max(1, len(s.Kernels))
	hosts := make([]string, count)
	for i := range hosts {
		hosts[i] = session.KernelName(i)
	}
	role, replicas := "main", "main:1"
	if number > 0 {
		role = "sub"
	}
	if count > 1 {
		replicas += ",sub:" + strconv.Itoa(count-1)
	}
	return []session.EnvVar{
		{Name: "SLIPWAY_CLUSTER_SIZE", Value: strconv.Itoa(count)},
		{Name: "SLIPWAY_CLUSTER_HOSTS", Value: strings.Join(hosts, ",")},
		{Name: "SLIPWAY_CLUSTER_HOST", Value: session.KernelName(number)},
		{Name: "SLIPWAY_CLUSTER_ROLE", Value: role},
		{Name: "SLIPWAY_CLUSTER_IDX", Value: strconv.Itoa(number)},
		{Name: "SLIPWAY_CLUSTER_REPLICAS", Value: replicas},
	}
}
