package hub

import "slipway/gpu"

// catalogue is what the launcher offers before anything is installed: public
// images for data work, the plain ones first. Sizes are of the download,
// compressed, rounded up; they tell a person whether to expect seconds or a
// coffee, no more.
func catalogue() []Environment {
	version := func(title, image string, mib gpu.Bytes) EnvironmentVersion {
		return EnvironmentVersion{Title: title, Image: image, Size: mib * gpu.MiB}
	}
	return []Environment{
		{ID: "python", Title: "Python", Icon: "python", Summary: "Python and pip on Debian, nothing else.", Versions: []EnvironmentVersion{
			version("3.13", "python:3.13", 390), version("3.12", "python:3.12", 390), version("3.11", "python:3.11", 390), version("3.12 slim", "python:3.12-slim", 45),
		}},
		{ID: "jupyter-scipy", Title: "Jupyter SciPy", Icon: "jupyter", Summary: "JupyterLab with NumPy, pandas, SciPy, scikit-learn and Matplotlib.", Versions: []EnvironmentVersion{
			version("latest", "quay.io/jupyter/scipy-notebook:latest", 1400), version("minimal", "quay.io/jupyter/minimal-notebook:latest", 600),
		}},
		{ID: "jupyter-datascience", Title: "Jupyter Data Science", Icon: "jupyter", Summary: "JupyterLab with Python, R and Julia kernels.", Versions: []EnvironmentVersion{
			version("latest", "quay.io/jupyter/datascience-notebook:latest", 1900),
		}},
		{ID: "pytorch", Title: "PyTorch", Icon: "pytorch", Summary: "PyTorch with CUDA and cuDNN; runs on the CPU as well.", Versions: []EnvironmentVersion{
			version("2.5 · CUDA 12.4", "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", 3100),
			version("2.5 · CUDA 12.4, with compilers", "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel", 6300),
			version("JupyterLab", "quay.io/jupyter/pytorch-notebook:latest", 2000),
		}},
		{ID: "tensorflow", Title: "TensorFlow", Icon: "tensorflow", Summary: "TensorFlow and Keras.", Versions: []EnvironmentVersion{
			version("2.18", "tensorflow/tensorflow:2.18.0", 700), version("2.18 · GPU", "tensorflow/tensorflow:2.18.0-gpu", 3600),
			version("2.18 · Jupyter", "tensorflow/tensorflow:2.18.0-jupyter", 800),
		}},
		{ID: "spark", Title: "Spark", Icon: "spark", Summary: "JupyterLab with PySpark.", Versions: []EnvironmentVersion{
			version("latest", "quay.io/jupyter/pyspark-notebook:latest", 1800),
		}},
		{ID: "r", Title: "R", Icon: "r", Summary: "R with the tidyverse, and RStudio Server.", Versions: []EnvironmentVersion{
			version("4.4 tidyverse", "rocker/tidyverse:4.4.2", 900), version("4.4", "r-base:4.4.2", 340),
		}},
		{ID: "julia", Title: "Julia", Icon: "julia", Summary: "The Julia language.", Versions: []EnvironmentVersion{
			version("1.11", "julia:1.11", 300), version("1.10", "julia:1.10", 290),
		}},
		{ID: "cuda", Title: "CUDA", Icon: "nvidia", Summary: "NVIDIA's compilers and libraries on Ubuntu.", Versions: []EnvironmentVersion{
			version("12.6 with compilers", "nvidia/cuda:12.6.2-cudnn-devel-ubuntu24.04", 5200), version("12.6 runtime", "nvidia/cuda:12.6.2-cudnn-runtime-ubuntu24.04", 2200),
		}},
		{ID: "ubuntu", Title: "Ubuntu", Icon: "ubuntu", Summary: "A bare Ubuntu.", Versions: []EnvironmentVersion{
			version("24.04", "ubuntu:24.04", 30), version("22.04", "ubuntu:22.04", 30),
		}},
		{ID: "debian", Title: "Debian", Icon: "debian", Summary: "A bare Debian.", Versions: []EnvironmentVersion{
			version("12", "debian:12", 50), version("12 slim", "debian:12-slim", 30),
		}},
	}
}
