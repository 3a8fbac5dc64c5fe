package listeners

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/session"
)

// certificate is what the machine shows to other computers.
type certificate struct {
	tls.Certificate
	leaf    *x509.Certificate
	toTrust string // PEM, if the machine made it itself
}

// ownFile has the certificate that the machine made, and its key. Without it, the machine makes another.
const ownFile = "services.pem"

// ownLifetime is that of a certificate that the machine makes. Clients trust this one certificate, and would have to be
// told of another.
const ownLifetime = 10 * 365 * 24 * time.Hour

// openCertificate reads the certificate of the settings; without one, that which the machine made, or makes now.
func openCertificate(dir string, config session.NetworkListener) (c certificate, err error) {
	path, own := config.Certificate, filepath.Join(dir, ownFile)
	if path != "" {
		c.Certificate, err = tls.LoadX509KeyPair(path, cmp.Or(config.Key, path))
	} else {
		path = own
		c, err = openOwn(path, config.Address)
	}
	if err == nil {
		c.leaf, err = x509.ParseCertificate(c.Certificate.Certificate[0])
	}
	if err != nil {
		return c, session.WrapError(err, session.CodeServerInvalid, "The certificate of services cannot be used.",
			"Correct "+path+" or the settings services.certificate and services.key.")
	}
	return c, nil
}

func openOwn(path, address string) (c certificate, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = makeOwn(address); err == nil {
			err = atomicwriter.WriteFile(path, data, 0o600)
		}
	}
	if err != nil {
		return c, err
	}
	if c.Certificate, err = tls.X509KeyPair(data, data); err != nil {
		return c, err
	}
	c.toTrust = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate.Certificate[0]}))
	return c, nil
}

// makeOwn makes a certificate for the names and addresses that this machine has now. It returns it with its key in PEM.
func makeOwn(address string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "Slipway services"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(ownLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range ownNames(address) {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	for _, block := range []pem.Block{{Type: "CERTIFICATE", Bytes: der}, {Type: "PRIVATE KEY", Bytes: private}} {
		if err := pem.Encode(&file, &block); err != nil {
			return nil, err
		}
	}
	return file.Bytes(), nil
}

// ownNames are what others may call this machine.
func ownNames(address string) []string {
	var names []string
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		names = append(names, host)
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	names = append(names, "localhost")
	addresses, _ := net.InterfaceAddrs() // without them, it is reached by its name
	for _, one := range addresses {
		if in, ok := one.(*net.IPNet); ok && !in.IP.IsLinkLocalUnicast() {
			names = append(names, in.IP.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// name is the first name of the certificate that is one of a machine; else its first address.
func (c certificate) name() string {
	for _, name := range c.leaf.DNSNames {
		if !strings.Contains(name, "*") && name != "localhost" {
			return name
		}
	}
	if len(c.leaf.IPAddresses) > 0 {
		return c.leaf.IPAddresses[0].String()
	}
	return "localhost"
}
