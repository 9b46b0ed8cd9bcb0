"""The table's rows of SciPy."""

from __future__ import annotations

from .causes import COMPLEX_ROOTS, SUM, THROUGH_A_VIEW, VIEW, WRITABLE, ZEROS_LIKE
from .record import Program, program, programs

SCIPY: dict[str, tuple[Program, ...]] = {
    "scipy.special": programs(
        "logsumexp(X, axis=1) *; softmax(X, axis=1); log_softmax(X, axis=1)",
        "betainc(unit, positive, unit); chdtr(positive, positive); entr(unit); erf(x); expit(x)",
        "gammainc(positive, positive); gammaln(positive); i0(x); log_ndtr(x); logit(unit)",
        "multigammaln(positive + 2, 2); ndtri(unit); polygamma(1, positive)",
        "rel_entr(unit, positive); sinc(x); xlogy(positive, positive)",
        "zeta(positive + 1, positive)",
    ),
    "scipy.stats": programs(
        "bartlett(x, y) *; brunnermunzel(x, y) *; chatterjeexi(x, y) *; chisquare(positive)",
        "circmean(x); circstd(x); circvar(x); combine_pvalues(unit)",
        "cramervonmises_2samp(x, y) *; describe(X) *; differential_entropy(x) *",
        "directional_stats(X); entropy(positive); f_oneway(x, y) *",
        "false_discovery_control(unit) *; fligner(x, y) *; friedmanchisquare(x, y, unit) *",
        "gmean(positive); gstd(positive) *; gzscore(positive); hmean(positive); iqr(x) *",
        "jarque_bera(x); kruskal(x, y) *; ks_1samp(x, scipy.special.ndtr); kstat(x, 3)",
        "kurtosis(X) *; kurtosistest(x) *; levene(x, y) *; lmoment(x) *; mannwhitneyu(x, y)",
        "median_abs_deviation(x); mode(labels) *; moment(X, 3)",
        "monte_carlo_test(x, lambda size: xp.broadcast_to(y, size), xp.mean, n_resamples=8)",
        "mood(x, y); normaltest(x) *; pearsonr(x, y)",
        "permutation_test((x[:4], y[:4]), lambda a, b, axis: xp.max(a - b, axis=axis)) *",
        "pmean(positive, 3); power_divergence(positive); quantile(x, unit) *; rankdata(x) *",
        "sem(X); sigmaclip(x); skew(X); skewtest(x); spearmanrho(x, y); tmean(x, (-1, 1))",
        "trim_mean(x, 0.1); tvar(x); ttest_1samp(X, 0.0) *; ttest_ind(x, y); ttest_rel(x, y)",
        "variation(positive); wilcoxon(x, y); zmap(x, y); zscore(X, axis=1)",
        "bootstrap((x,), xp.mean, n_resamples=20, rng=0) *",
    ),
    "scipy.signal": programs(
        'bilinear(positive[:3], positive[1:4]); convolve(x, y); correlate(x, y, mode="same")',
        "convolve2d(X, square); deconvolve(x, y[:5]); detrend(x); envelope(x) *",
        "fftconvolve(x, y); filtfilt(b, a, x); firwin(9, xp.asarray([0.2, 0.4])) *",
        "freqz(b, a, worN=16); hilbert(x); lfilter(b, a, x); medfilt(x, 5)",
        program("oaconvolve(x, y[:5])", jax=THROUGH_A_VIEW, slow=True),
        "resample(x, 30); resample_poly(x, 3, 2); savgol_filter(x, 5, 2) *",
        program("sosfilt(sos, x)", jax=WRITABLE),
        program("tf2zpk(a, b)", every=COMPLEX_ROOTS),
        "upfirdn(b, x, 2); vectorstrength(positive, 0.7); wiener(x); zpk2tf(x[:2], x[2:4], 1.0)",
        "cspline1d(x); lp2hp(b, a)",
    ),
    "scipy.signal.windows": programs(
        'get_window("hann", 16, xp=xp); kaiser(16, 5.0, xp=xp)',
    ),
    "scipy.fft": programs(
        "fft(x); ifft(z); fft2(X); fftn(X); rfft(x); irfft(z); hfft(z); fftshift(x)",
        "fftfreq(8, xp=xp); dct(x); dstn(X); fht(x, 0.1, 0.5)",
    ),
    "scipy.ndimage": programs(
        "gaussian_filter(X, 1.0); sobel(X); median_filter(X, 3); label(X > 0); zoom(X, 2)",
        "rotate(X, 30.0); binary_dilation(X > 0); distance_transform_edt(X > 0)",
        "vectorized_filter(X, xp.max, size=3); center_of_mass(positive)",
    ),
    "scipy.cluster.vq": programs(
        'whiten(X); kmeans(X, X[:3, :]); kmeans2(X, X[:3, :], minit="matrix"); vq(X, X[:3, :])',
    ),
    "scipy.cluster.hierarchy": programs(
        "linkage(X); fcluster(linkage(X), 1.0) *; cophenet(linkage(X)) *; maxdists(linkage(X))",
    ),
    "scipy.constants": programs(
        'convert_temperature(x, "Celsius", "Kelvin"); lambda2nu(positive)',
    ),
    "scipy.integrate": programs(
        "trapezoid(X, axis=0); cumulative_trapezoid(x); cumulative_simpson(x) *; romb(x[:17])",
        "tanhsinh(xp.exp, x, x + 1).integral *",
        program(
            "nsum(lambda k: 1 / k ** 2, xp.asarray(1.0), xp.asarray(xp.inf)).sum",
            every=SUM,
            slow=True,
        ),
        "cubature(lambda v: xp.sum(v ** 2, axis=-1), x[:2] - 3, x[:2] + 3).estimate *",
    ),
    "scipy.optimize": programs(
        "rosen(x); rosen_der(x); rosen_hess(x)",
    ),
    "scipy.optimize.elementwise": programs(
        "find_root(lambda v, a: v ** 2 - a, (positive * 0, positive + 1), args=(positive,)).x *",
        "find_minimum(lambda v, a: (v - a) ** 2, (x - 1, x + 0.1, x + 2), args=(x,)).x *",
        "bracket_root(lambda v: v ** 3 - 2, x - 5, x + 5).bracket *",
        "bracket_minimum(lambda v: v ** 2, x).bracket *",
    ),
    "scipy.differentiate": programs(
        "derivative(xp.exp, x).df *; jacobian(lambda v: v ** 2, x[:3]).df *",
        program("hessian(lambda v: xp.sum(v ** 3, axis=0), x[:3]).ddf", every=SUM, slow=True),
    ),
    "scipy.interpolate": programs(
        "CubicSpline(xp.sort(y), x)(unit)",
        program("PchipInterpolator(xp.sort(y), x)(unit)", every=ZEROS_LIKE, slow=True),
        "Akima1DInterpolator(xp.sort(y), x)(unit) *; make_interp_spline(xp.sort(y), x)(unit)",
        program("RBFInterpolator(X, target)(X + 0.1)", every=VIEW),
        "RegularGridInterpolator((xp.sort(target), xp.sort(target[:4])), X)(xp.zeros((5, 2)))",
        "BSpline(xp.arange(7.0), target[:4], 2)(unit + 2)",
    ),
    "scipy.linalg": programs(
        "block_diag(X, square); fiedler(x); orthogonal_procrustes(X, X + 1)",
    ),
    "scipy.spatial.transform": programs(
        'Rotation.from_euler("xyz", X[:, :3]).as_matrix() *',
        'Rotation.from_quat(X).as_euler("zyx") *',
        "Rotation.from_rotvec(X[:, :3]).inv().apply(X[:, 1:]) *",
        "Rotation.from_rotvec(X[:, :3]).mean().as_quat() *",
        "Rotation.from_rotvec(X[:, :3]).magnitude()",
        "Slerp(xp.sort(target), Rotation.from_quat(X))(target[:1]).as_quat() *",
        "RigidTransform.from_translation(X[:, :3]).as_matrix() *",
    ),
}
