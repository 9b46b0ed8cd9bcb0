"""The table's rows of scikit-learn."""

from __future__ import annotations

from .causes import FLAT, HSTACK, NUMPYS_CODE, THROUGH_A_VIEW
from .record import Program, program

SKLEARN: dict[str, tuple[Program, ...]] = {
    "sklearn.metrics": (
        program("accuracy_score(labels, predicted)"),
        program("balanced_accuracy_score(labels, predicted)", slow=True),
        program("brier_score_loss(binary, scores)", slow=True),
        program("cohen_kappa_score(labels, predicted)", slow=True),
        program("confusion_matrix(labels, predicted)"),
        program("d2_tweedie_score(XP[:, 0], XP[:, 1])"),
        program("explained_variance_score(target, X[:, 0])"),
        program('f1_score(labels, predicted, average="macro")', slow=True),
        program('fbeta_score(labels, predicted, beta=2.0, average="macro")', slow=True),
        program("hamming_loss(labels, predicted)"),
        program('jaccard_score(labels, predicted, average="macro")'),
        program("log_loss(binary, scores)", slow=True),
        program("matthews_corrcoef(labels, predicted)", numpy=HSTACK, torch=HSTACK, jax=HSTACK),
        program("max_error(target, X[:, 0])"),
        program("mean_absolute_error(target, X[:, 0])"),
        program("mean_absolute_percentage_error(target, X[:, 0])"),
        program("mean_gamma_deviance(XP[:, 0], XP[:, 1])"),
        program("mean_pinball_loss(target, X[:, 0])"),
        program("mean_poisson_deviance(XP[:, 0], XP[:, 1])"),
        program('mean_squared_error(X, X + 1, multioutput="raw_values")'),
        program("mean_squared_log_error(XP[:, 0], XP[:, 1])"),
        program("median_absolute_error(target, X[:, 0])"),
        program("multilabel_confusion_matrix(labels, predicted)"),
        program("precision_recall_curve(binary, scores)", slow=True),
        program("precision_recall_fscore_support(labels, predicted)"),
        program('precision_score(labels, predicted, average="macro")'),
        program("r2_score(target, X[:, 0])"),
        program('recall_score(labels, predicted, average="macro")'),
        program("roc_auc_score(binary, scores)", slow=True),
        program("roc_curve(binary, scores)", slow=True),
        program("det_curve(binary, scores)", slow=True),
        program("root_mean_squared_error(target, X[:, 0])"),
        program("zero_one_loss(labels, predicted)"),
        program("silhouette_score(X, labels)", every=FLAT, slow=True),
        program("calinski_harabasz_score(X, labels)"),
        program("davies_bouldin_score(X, labels)", slow=True),
    ),
    "sklearn.metrics.pairwise": (
        program("additive_chi2_kernel(XP)"),
        program("chi2_kernel(XP)"),
        program("cosine_distances(X)"),
        program("cosine_similarity(X, X + 1)"),
        program("euclidean_distances(X, X + 1)"),
        program("laplacian_kernel(X)"),
        program("linear_kernel(X)"),
        program("manhattan_distances(X)"),
        program("paired_cosine_distances(X, X + 1)"),
        program("paired_euclidean_distances(X, X + 1)"),
        program("pairwise_distances(X)"),
        program("polynomial_kernel(X)"),
        program("rbf_kernel(X)"),
        program("sigmoid_kernel(X)"),
    ),
    "sklearn.preprocessing": (
        program("Binarizer(threshold=0.5).fit_transform(X)"),
        program("KernelCenterer().fit_transform(X @ X.T)"),
        program("LabelBinarizer().fit_transform(labels)"),
        program("LabelEncoder().fit_transform(labels)"),
        program("MaxAbsScaler().fit_transform(X)"),
        program("MinMaxScaler().fit_transform(X)"),
        program("Normalizer().fit_transform(X)"),
        program("PolynomialFeatures(2).fit_transform(X)", slow=True),
        program(
            "RobustScaler().fit_transform(X)",
            numpy=NUMPYS_CODE,
            torch=NUMPYS_CODE,
            jax=NUMPYS_CODE,
        ),
        program("StandardScaler().fit_transform(X)", slow=True),
        program("StandardScaler().fit(X).inverse_transform(X)", slow=True),
        program("label_binarize(labels, classes=[0, 1, 2])"),
        program("normalize(X)"),
    ),
    "sklearn.decomposition": (
        program("PCA(2).fit_transform(X)", slow=True),
        program('PCA(2, svd_solver="randomized", random_state=0).fit_transform(X)', slow=True),
        program("PCA(2, whiten=True).fit(X).inverse_transform(X[:, :2])", slow=True),
    ),
    "sklearn.linear_model": (
        program('Ridge(solver="svd").fit(X, target).predict(X)', slow=True),
        program("RidgeCV().fit(X, target).predict(X)", slow=True),
        program('RidgeClassifier(solver="svd").fit(X, labels).predict(X)', slow=True),
        program("RidgeClassifierCV().fit(X, labels).decision_function(X)", slow=True),
        program("LogisticRegression().fit(X, labels).predict_proba(X)", slow=True),
        program("PoissonRegressor().fit(X, XP[:, 0]).predict(X)"),
    ),
    "sklearn.discriminant_analysis": (
        program("LinearDiscriminantAnalysis().fit(X, labels).predict_proba(X)", slow=True),
    ),
    "sklearn.naive_bayes": (program("GaussianNB().fit(X, labels).predict_proba(X)", slow=True),),
    "sklearn.mixture": (
        program(
            'GaussianMixture(2, init_params="random", random_state=0).fit(X).means_',
            jax=THROUGH_A_VIEW,
            slow=True,
        ),
        program(
            'GaussianMixture(2, covariance_type="diag", init_params="random", random_state=0)'
            ".fit(X).means_",
            slow=True,
        ),
    ),
    "sklearn.kernel_approximation": (
        program("Nystroem(n_components=5, random_state=0).fit_transform(X)", slow=True),
    ),
    "sklearn.model_selection": (
        program("train_test_split(X, target, random_state=0)"),
        program(
            "cross_val_predict(sklearn.naive_bayes.GaussianNB(), X, labels, cv=2)",
            slow=True,
        ),
    ),
    "sklearn.utils.extmath": (program("randomized_svd(X, 2, random_state=0)", slow=True),),
    "sklearn.calibration": (
        program(
            'CalibratedClassifierCV(sklearn.naive_bayes.GaussianNB(), method="temperature", cv=2)'
            ".fit(X, labels).predict_proba(X)",
            slow=True,
        ),
    ),
}
