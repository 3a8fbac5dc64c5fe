package launch

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"hash/crc32"
	"strconv"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// clusterOf lets kernels reach each other by ssh. Keys derive from the agent's secret, to be the same after a crash.
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

// sshKey derives a private Ed25519 key in OpenSSH's format from the agent's secret and a purpose.
func (r *Runner) sshKey(purpose ...string) string {
	mac := hmac.New(sha256.New, r.config.Records.Secret())
	mac.Write([]byte(strings.Join(purpose, "\x00"))) // a hash never fails
	key := ed25519.NewKeyFromSeed(mac.Sum(nil))
	return string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: openSSH(key)}))
}

// openSSH encodes a key without a passphrase, as in OpenSSH's PROTOCOL.key.
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

// meetingEnv tells the launchers of distributed programs where the kernels of a cluster meet. MASTER_ADDR and
// MASTER_PORT are read by all of them, NODE_RANK by Lightning, and the variables with PET by torchrun, as defaults of
// its options. WORLD_SIZE and RANK count processes: they are set only where a kernel has no use for more than one,
// because launchers that start several per kernel set them for each. LOCAL_RANK is never set: libraries take it as the
// sign that a launcher has started them.
func meetingEnv(s session.Session, number int) []session.EnvVar {
	count := len(s.Kernels)
	if count < 2 {
		return nil
	}
	size, rank, port := strconv.Itoa(count), strconv.Itoa(number), strconv.Itoa(meetingPort(s.ID))
	env := []session.EnvVar{
		{Name: "MASTER_ADDR", Value: session.MainKernel}, {Name: "MASTER_PORT", Value: port},
		{Name: "NNODES", Value: size}, {Name: "NODE_RANK", Value: rank},
		{Name: "PET_NNODES", Value: size}, {Name: "PET_NODE_RANK", Value: rank},
		{Name: "PET_MASTER_ADDR", Value: session.MainKernel}, {Name: "PET_MASTER_PORT", Value: port},
	}
	if asked := s.Spec.Accelerator; max(asked.Devices, asked.Count) <= 1 && asked.Shares <= gpu.WholeDevice {
		env = append(env, session.EnvVar{Name: "WORLD_SIZE", Value: size}, session.EnvVar{Name: "RANK", Value: rank})
	}
	return env
}

// meetingPort is where the processes of a cluster's kernels meet. On a Slurm cluster sessions share the networks of
// their nodes, so each has a port of its own, below those that Linux gives to clients.
func meetingPort(id session.ID) int { return 26000 + int(crc32.ChecksumIEEE([]byte(id))%6000) }
